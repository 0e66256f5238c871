// Looking up settings by the names that people give them.
#include "trainer/config/fields.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "trainer/config/later_release.h"

namespace assay::config {
namespace {

bool has_name(const Field& field, std::string_view name) {
  return std::find(field.names.begin(), field.names.end(), name) != field.names.end();
}

std::string_view section_of(std::string_view key) {
  const size_t dot = key.find('.');
  return dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
}

// "data" for both spellings of that section.
std::string_view canonical_section(std::string_view name) {
  return name == "dataset" ? "data" : name;
}

// Every spelling that is understood, and the one to recommend for it.
std::map<std::string, std::string> known_spellings(bool is_option) {
  std::map<std::string, std::string> known;
  for (const Field& field : fields()) {
    const std::string key(field.key);
    known[key] = key;
    if (field.names.empty()) known[key.substr(key.find('.') + 1)] = key;
    for (const std::string_view name : field.names) {
      known[std::string(name)] = std::string(name);
      if (const std::string_view section = section_of(key); !section.empty()) {
        known[cat(section, ".", name)] = key;
      }
      if (is_option && field.type == FieldType::kBool) known[cat("no_", name)] = cat("no_", name);
    }
  }
  for (const Switch& choice : switches())
    known[std::string(choice.name)] = std::string(choice.name);
  for (const LaterSetting& later : later_settings()) {
    if (later.value.empty()) known[std::string(later.key)] = std::string(later.key);
  }
  if (is_option) {
    known["help"] = "help";
    known["print_config"] = "print_config";
  }
  return known;
}

}  // namespace

bool is_section(std::string_view name) {
  const std::string_view section = canonical_section(name);
  return std::any_of(fields().begin(), fields().end(),
                     [&](const Field& field) { return section_of(field.key) == section; });
}

std::string normalized_name(std::string_view name) {
  std::string normalized(name);
  std::replace(normalized.begin(), normalized.end(), '-', '_');
  return normalized;
}

const Field* find_field(std::string_view name) {
  for (const Field& field : fields()) {
    if (field.key == name || has_name(field, name)) return &field;
  }
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return nullptr;
  const std::string_view section = canonical_section(name.substr(0, dot));
  const std::string_view rest = name.substr(dot + 1);
  for (const Field& field : fields()) {
    if (section_of(field.key) != section) continue;
    if (has_name(field, rest) || field.key.substr(section.size() + 1) == rest) return &field;
  }
  return nullptr;
}

const Switch* find_switch(std::string_view name) {
  for (const Switch& choice : switches()) {
    if (choice.name == name) return &choice;
  }
  return nullptr;
}

std::string example_usage(const Field& field) {
  if (field.names.empty()) return cat(field.key, "=", field.example);
  if (field.type != FieldType::kBool) return cat("--", field.names.front(), " ", field.example);
  return cat("--", field.example == "false" ? "no-" : "", field.names.front());
}

std::string spelling_hint(std::string_view name, bool is_option) {
  const std::map<std::string, std::string> known = known_spellings(is_option);
  std::vector<std::string> candidates;
  for (const auto& [spelling, recommended] : known) candidates.push_back(spelling);
  const std::optional<std::string> nearest = nearest_spelling(normalized_name(name), candidates);
  if (!nearest) return ". Fix: assay train --help lists every setting";
  const std::string& recommended = known.at(*nearest);
  if (!is_option) return cat("; did you mean ", quoted(recommended), "?");
  // A setting without an option of its own is written key=value.
  const bool is_word = recommended.find('.') == std::string::npos;
  return cat("; did you mean ", quoted(is_word ? cat("--", recommended) : cat(recommended, "=...")),
             "?");
}

std::string_view group_title(FieldGroup group) {
  switch (group) {
    case FieldGroup::kRun:
      return "Run";
    case FieldGroup::kModel:
      return "Model";
    case FieldGroup::kData:
      return "Data";
    case FieldGroup::kTraining:
      return "Batch and loss";
    case FieldGroup::kOptimizer:
      return "Optimizer";
    case FieldGroup::kSchedule:
      return "Schedule";
    case FieldGroup::kPlatform:
      return "Precision and device";
    case FieldGroup::kRanks:
      return "Several ranks";
    case FieldGroup::kCheckpoints:
      return "Checkpoints and resume";
    case FieldGroup::kLogging:
      return "Logging and evaluation";
  }
  return "";
}

}  // namespace assay::config
