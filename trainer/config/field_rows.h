// How a row of the table of settings is made from a member of RunConfig. Only for field_table*.cpp.
#pragma once

#include <optional>
#include <utility>

#include "trainer/config/fields.h"

namespace assay::config::field_rows {

inline constexpr double kMaxCount = 2147483647;  // counts stay below 2^31 everywhere
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr Limits kCount{.low = 1, .high = kMaxCount};
inline constexpr Limits kCountOrNone{.low = 0, .high = kMaxCount};
inline constexpr Limits kPositive{
    .low = 0, .high = kInfinity, .is_low_open = true, .is_high_open = true};
inline constexpr Limits kNotNegative{.low = 0, .high = kInfinity, .is_high_open = true};
inline constexpr Limits kFraction{.low = 0, .high = 1};
inline constexpr Limits kBelowOne{.low = 0, .high = 1, .is_high_open = true};

template <auto First, auto... Rest, class Object>
auto& member_of(Object& object) {
  if constexpr (sizeof...(Rest) == 0) {
    return object.*First;
  } else {
    return member_of<Rest...>(object.*First);
  }
}

template <class Type>
struct MemberTraits;
template <>
struct MemberTraits<bool> {
  static constexpr FieldType kType = FieldType::kBool;
  static Value get(bool member) { return member; }
  static void set(bool& member, const Value& value) { member = std::get<bool>(value); }
};
template <>
struct MemberTraits<int64_t> {
  static constexpr FieldType kType = FieldType::kInteger;
  static Value get(int64_t member) { return member; }
  static void set(int64_t& member, const Value& value) { member = std::get<int64_t>(value); }
};
template <>
struct MemberTraits<uint64_t> {
  static constexpr FieldType kType = FieldType::kUnsigned;
  static Value get(uint64_t member) { return member; }
  static void set(uint64_t& member, const Value& value) { member = std::get<uint64_t>(value); }
};
template <>
struct MemberTraits<double> {
  static constexpr FieldType kType = FieldType::kNumber;
  static Value get(double member) { return member; }
  static void set(double& member, const Value& value) { member = std::get<double>(value); }
};
template <>
struct MemberTraits<std::string> {  // empty: unset
  static constexpr FieldType kType = FieldType::kText;
  static Value get(const std::string& member) {
    return member.empty() ? Value(Unset{}) : Value(member);
  }
  static void set(std::string& member, const Value& value) {
    member = std::holds_alternative<Unset>(value) ? "" : std::get<std::string>(value);
  }
};
template <class Type>
struct MemberTraits<std::optional<Type>> {
  static constexpr FieldType kType = MemberTraits<Type>::kType;
  static Value get(const std::optional<Type>& member) { return member ? Value(*member) : Unset{}; }
  static void set(std::optional<Type>& member, const Value& value) {
    member.reset();
    if (!std::holds_alternative<Unset>(value)) member = std::get<Type>(value);
  }
};

// A row for the member that a path of pointers leads to, e.g. &RunConfig::model,
// &ModelConfig::name.
template <auto... Path>
Field row(Field field) {
  using Member = std::remove_cvref_t<decltype(member_of<Path...>(std::declval<RunConfig&>()))>;
  field.type = MemberTraits<Member>::kType;
  field.is_optional = std::holds_alternative<Unset>(
      MemberTraits<Member>::get(member_of<Path...>(static_cast<const RunConfig&>(RunConfig{}))));
  field.get = [](const RunConfig& config) {
    return MemberTraits<Member>::get(member_of<Path...>(config));
  };
  field.set = [](RunConfig& config, const Value& value) {
    MemberTraits<Member>::set(member_of<Path...>(config), value);
  };
  return field;
}

// The rows that stand in field_table_training.cpp and field_table_ranks.cpp.
void add_training_rows(std::vector<Field>& table);
void add_rank_rows(std::vector<Field>& table);

}  // namespace assay::config::field_rows
