// The one table of settings. Parsing, --help, validation, config.json, the identity digest and the
// differences of a resume are all driven by it; a setting exists nowhere else. Not for callers
// outside trainer/config: they use config_io.h.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/config/config_io.h"
#include "trainer/config/run_config.h"

namespace assay::config {

// Value of a setting that may be left out and was.
struct Unset {
  bool operator==(const Unset&) const = default;
};
using Value = std::variant<Unset, bool, int64_t, uint64_t, double, std::string>;

enum class FieldType { kBool, kInteger, kUnsigned, kNumber, kText };

enum class FieldGroup {  // in the order of --help
  kRun,
  kModel,
  kData,
  kTraining,
  kOptimizer,
  kSchedule,
  kPlatform,
  kRanks,
  kCheckpoints,
  kLogging,
};

// Allowed values of a number; bounds are part of the range unless open.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool is_low_open = false;
  bool is_high_open = false;
};

// Another accepted spelling of a choice.
struct Spelling {
  std::string_view alias;
  std::string_view choice;
};

struct Field {
  std::string_view key;                      // "optimizer.learning_rate", "batch_size"
  std::vector<std::string_view> names = {};  // options without "--", the usual one first
  FieldGroup group = FieldGroup::kRun;
  FieldRole role = FieldRole::kFree;
  std::string_view help = {};                  // meaning, unit, effect of 0
  std::string_view example = {};               // a value that is allowed
  Limits limits = {};                          // numbers
  std::vector<std::string_view> choices = {};  // texts; empty: any text but the empty one
  std::vector<Spelling> spellings = {};
  bool is_of_session = false;  // never taken over from a run being resumed
  // Filled from the member that the field stands for.
  FieldType type = FieldType::kBool;
  bool is_optional = false;  // may be Unset, null in JSON
  Value (*get)(const RunConfig&) = nullptr;
  void (*set)(RunConfig&, const Value&) = nullptr;  // `value` must have the field's type
};

std::span<const Field> fields();

// A yes-or-no option that chooses one value of a field: --bf16 is precision=bf16.
struct Switch {
  std::string_view name;
  std::string_view key;    // of the field
  std::string_view value;  // when on; when off, the field's first choice takes its place
  std::string_view help;
};
std::span<const Switch> switches();

// Sections of CONFIG.json; a plain value given to a section is its main field's ("model": "gpt2").
bool is_section(std::string_view name);

// '-' and '_' are the same in names.
std::string normalized_name(std::string_view name);

// By dotted key, option name, or "section.option name". `name` must be normalized.
const Field* find_field(std::string_view name);
const Switch* find_switch(std::string_view name);

// How a user would write the setting on the command line: "--batch_size 64", "model.n_layer=4".
std::string example_usage(const Field& field);

// "; did you mean ...?" for a name that is not known, or what to read instead.
std::string spelling_hint(std::string_view name, bool is_option);

std::string_view group_title(FieldGroup group);

}  // namespace assay::config
