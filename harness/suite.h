// A suite: which scenarios run, how large they are, which checks are required, and every threshold
// with its reason. JSON files under harness/suites/, built into the program, or --suite-file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::harness {

struct CheckSetting {
  bool is_required = true;  // false: advisory
  std::optional<double> threshold;
  std::string reason;  // why this threshold, why advisory
};

struct ScenarioSettings {
  std::string name;
  bool is_required = true;      // could_not_run of it is could_not_run of the whole
  double expected_seconds = 0;  // on two CPU cores; for the time left
  std::map<std::string, double> sizes;
  std::map<std::string, std::vector<std::string>> lists;
  std::map<std::string, CheckSetting> checks;
};

struct Workload {
  std::string name;                  // "digits"
  std::vector<std::string> options;  // words after "train"
  int64_t train_samples = 0;         // 0: unknown
  int64_t eval_samples = 0;
  bool drops_last = false;  // of a user's configuration: a short last window is dropped
};

struct Suite {
  std::string name;
  std::string description;
  uint64_t seed = 0;                      // of the moments at which runs are killed
  double stall_limit_seconds = 0;         // without a new step a trainer run of this suite hangs
  double config_stall_limit_seconds = 0;  // the same for the user's own configuration
  std::vector<Workload> workloads;
  std::vector<ScenarioSettings> scenarios;  // in the order in which they run
  std::string digest;                       // SHA-256 of the file's text
};

// What a scenario's code asks of a suite; the parser demands exactly this.
struct ScenarioNeeds {
  std::string name = {};
  std::vector<std::string> sizes = {};
  std::vector<std::string> lists = {};
  std::vector<std::string> checks = {};
  std::vector<std::string> checks_with_threshold = {};  // a subset of `checks`
};

// Strict: unknown, missing and duplicate keys, wrong types and values out of range are refused, all
// at once, with the nearest spelling. Throws ConfigError naming `origin`.
Suite parse_suite(std::string_view text, const std::string& origin,
                  std::span<const ScenarioNeeds> known);

const ScenarioSettings* find_settings(const Suite& suite, std::string_view scenario);
const Workload& find_workload(const Suite& suite, std::string_view name);  // throws ConfigError

// The suites built into the program.
std::vector<std::string> embedded_suite_names();
// Throws ConfigError for an unknown name, with the nearest spelling.
std::string_view embedded_suite_text(std::string_view name);

}  // namespace assay::harness
