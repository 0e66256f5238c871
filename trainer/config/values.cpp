#include "trainer/config/values.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace assay::config {
namespace {

// Doubles hold every integer up to here exactly; beyond, "integral" says nothing.
constexpr double kMaxExactInteger = 9007199254740992.0;  // 2^53
constexpr size_t kMaxTextBytes = 4095;                   // PATH_MAX less the final zero
constexpr size_t kMaxShownBytes = 80;

std::optional<int64_t> integral(double number) {
  if (!std::isfinite(number) || std::fabs(number) > kMaxExactInteger) return std::nullopt;
  if (number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

bool is_inside(const Limits& limits, double number) {
  if (!std::isfinite(number)) return false;
  const bool is_high_enough = limits.is_low_open ? number > limits.low : number >= limits.low;
  const bool is_low_enough = limits.is_high_open ? number < limits.high : number <= limits.high;
  return is_high_enough && is_low_enough;
}

std::optional<bool> bool_of(std::string_view text) {
  for (const std::string_view yes : {"true", "True", "yes", "1"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"false", "False", "no", "0"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

std::string_view choice_of(const Field& field, std::string_view text) {
  for (const Spelling& spelling : field.spellings) {
    if (spelling.alias == text) return spelling.choice;
  }
  return text;
}

std::optional<Value> allowed(const Field& field, Value value) {
  if (!is_allowed(field, value)) return std::nullopt;
  return value;
}

std::optional<Value> integer_value(const Field& field, std::string_view text) {
  if (const std::optional<int64_t> whole = parse_int64(text)) return allowed(field, *whole);
  const std::optional<double> number = parse_double(text);
  const std::optional<int64_t> whole = number ? integral(*number) : std::nullopt;
  if (!whole) return std::nullopt;
  return allowed(field, *whole);
}

std::optional<Value> unsigned_value(std::string_view text) {
  if (const std::optional<uint64_t> whole = parse_uint64(text)) return Value(*whole);
  const std::optional<double> number = parse_double(text);
  const std::optional<int64_t> whole = number ? integral(*number) : std::nullopt;
  if (!whole || *whole < 0) return std::nullopt;
  return Value(static_cast<uint64_t>(*whole));
}

std::optional<Value> number_from_json(const Field& field, const nlohmann::json& json) {
  if (!json.is_number()) return std::nullopt;
  if (field.type == FieldType::kNumber) return allowed(field, json.get<double>());
  if (json.is_number_float()) return value_from_text(field, number_text(json.get<double>()));
  return value_from_text(field, json.dump());
}

std::string limits_text(const Limits& limits) {
  const bool has_low = std::isfinite(limits.low);
  const bool has_high = std::isfinite(limits.high);
  if (has_low && has_high && !limits.is_low_open && !limits.is_high_open) {
    return cat(" in ", limits.low, " .. ", limits.high);
  }
  std::string text;
  if (has_low) text = cat(limits.is_low_open ? " > " : " >= ", limits.low);
  if (has_high) {
    text += cat(text.empty() ? "" : " and", limits.is_high_open ? " < " : " <= ", limits.high);
  }
  return text;
}

// In quotes, cut between two characters if it is long.
std::string shown_text(std::string_view text) {
  if (text.size() <= kMaxShownBytes) return quoted(text);
  size_t end = kMaxShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
  return cat(quoted(text.substr(0, end)), "... (", text.size(), " bytes)");
}

// Whole numbers without an exponent ("2147483647", not "2.147483647e+09").
std::string whole_limits_text(const Limits& limits) {
  return cat(" in ", static_cast<int64_t>(limits.low), " .. ", static_cast<int64_t>(limits.high));
}

}  // namespace

std::optional<Value> value_from_text(const Field& field, std::string_view text) {
  switch (field.type) {
    case FieldType::kBool: {
      const std::optional<bool> value = bool_of(text);
      return value ? std::optional<Value>(*value) : std::nullopt;
    }
    case FieldType::kInteger:
      return integer_value(field, text);
    case FieldType::kUnsigned:
      return unsigned_value(text);
    case FieldType::kNumber: {
      const std::optional<double> number = parse_double(text);
      if (!number) return std::nullopt;
      return allowed(field, *number);
    }
    case FieldType::kText:
      return allowed(field, std::string(choice_of(field, text)));
  }
  return std::nullopt;
}

std::optional<Value> value_from_json(const Field& field, const nlohmann::json& json) {
  if (json.is_null()) return field.is_optional ? std::optional<Value>(Unset{}) : std::nullopt;
  switch (field.type) {
    case FieldType::kBool:
      return json.is_boolean() ? std::optional<Value>(json.get<bool>()) : std::nullopt;
    case FieldType::kText:
      if (!json.is_string()) return std::nullopt;
      return value_from_text(field, json.get_ref<const std::string&>());
    default:
      return number_from_json(field, json);
  }
}

bool is_allowed(const Field& field, const Value& value) {
  if (std::holds_alternative<Unset>(value)) return field.is_optional;
  if (const auto* whole = std::get_if<int64_t>(&value)) {
    return is_inside(field.limits, static_cast<double>(*whole));
  }
  if (const auto* number = std::get_if<double>(&value)) return is_inside(field.limits, *number);
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return true;
  if (!field.choices.empty()) {
    return std::find(field.choices.begin(), field.choices.end(), *text) != field.choices.end();
  }
  return !text->empty() && text->size() <= kMaxTextBytes && is_valid_utf8(*text) &&
         text->find('\0') == std::string::npos;
}

nlohmann::json value_to_json(const Value& value) {
  return std::visit(
      [](const auto& held) -> nlohmann::json {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(held)>, Unset>) {
          return nullptr;
        } else {
          return held;
        }
      },
      value);
}

std::string value_text(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  return value_to_json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string shown_json(const nlohmann::json& json) {
  if (json.is_number_float()) return number_text(json.get<double>());
  if (json.is_string()) return shown_text(json.get_ref<const std::string&>());
  if (json.is_object()) return "an object";
  if (json.is_array()) return "an array";
  return json.dump();
}

std::string shown_word(std::string_view text) {
  return parse_double(text) ? std::string(text) : shown_text(text);
}

std::string expected_text(const Field& field) {
  switch (field.type) {
    case FieldType::kBool:
      return "true or false";
    case FieldType::kInteger:
      return cat("an integer", whole_limits_text(field.limits));
    case FieldType::kUnsigned:
      return "an integer in 0 .. 18446744073709551615";
    case FieldType::kNumber:
      return cat("a number", limits_text(field.limits));
    case FieldType::kText:
      break;
  }
  if (field.choices.empty()) return cat("UTF-8 text of 1 to ", kMaxTextBytes, " bytes");
  std::string choices;
  for (const std::string_view choice : field.choices) {
    choices += cat(choices.empty() ? "one of " : ", ", choice);
  }
  return choices;
}

}  // namespace assay::config
