// RunConfig from files, options and key=value words, and back. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/run_config.h"

namespace assay::config {

// How a field behaves across a resume.
enum class FieldRole {
  kIdentity,  // must be equal on resume (model, data, batch, precision, seed, optimizer, schedule)
  kTarget,    // may grow (max_steps, num_train_epochs)
  kFree,      // may differ (logging, saving, workers, device, folders)
};

struct ParsedArguments {
  RunConfig config;
  // Dotted names of the fields that a file, an option or a key=value word set, sorted.
  std::vector<std::string> given;
  bool is_print_config = false;  // --print-config
  bool is_help = false;          // --help
};

// `words` are the words after "train". Precedence: defaults < CONFIG.json < options and key=value.
// `base`, if given, replaces the defaults (a resume starts from the run's own configuration), less
// output_dir, overwrite_output_dir, resume_from_checkpoint and allow_config_change, which concern
// one session. In the result data.name is never empty.
// Throws ConfigError listing every violation at once (unknown keys with the nearest spelling,
// duplicates, wrong types, values out of range), each as "what, got, expected, where, fix".
ParsedArguments parse_train_arguments(std::span<const std::string> words,
                                      const RunConfig* base = nullptr);

// Syntax, types and ranges only: combinations of values are not judged and data.name stays as
// given. To find out whether `words` ask for a resume, before the run's own configuration is known.
ParsedArguments peek_train_arguments(std::span<const std::string> words);

// Grouped help with one sentence and the default of each option.
std::string train_help();

// Canonical JSON text (sorted keys, sections, every field, unset ones as null), newline at the end.
std::string config_to_json(const RunConfig& config);
// Reads what config_to_json wrote (unknown keys refused). Throws ConfigError naming `origin`.
// A "config_digest" member is checked if there is one.
RunConfig config_from_json(std::string_view text, const std::string& origin);

// Content of a run folder's config.json: config_to_json with the member "config_digest", the
// SHA-256 of config_to_json's text.
std::string config_file_text(const RunConfig& config);

// SHA-256 over the canonical JSON of the identity fields alone. Settings that are left out count
// with the value that they have then.
std::string identity_digest(const RunConfig& config);

struct FieldDifference {
  std::string key;     // dotted
  std::string before;  // JSON text of the values
  std::string after;
  FieldRole role;
};
// Fields that differ, sorted by key. A setting left out equals one given as it is anyway.
std::vector<FieldDifference> config_differences(const RunConfig& before, const RunConfig& after);

// The numbers of schedule.milestones, none if it is empty; nothing if it is not a list of rising
// numbers above 0.
std::optional<std::vector<int64_t>> milestones_of(const ScheduleConfig& schedule);

// Dotted keys that allow_config_change names, sorted.
std::vector<std::string> allowed_changes(const RunConfig& config);

// What is wrong with the values themselves and with their combinations; empty if nothing.
std::vector<std::string> validate(const RunConfig& config);

// Every model and data set name that exists, for help and spelling.
std::span<const std::string> model_names();
std::span<const std::string> dataset_names();
bool is_gpt_model(std::string_view name);

}  // namespace assay::config
