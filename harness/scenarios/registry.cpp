// The list of all scenarios. To add one: its file, its line here, its strings, its suite entries.
#include "base/error.h"
#include "base/text.h"
#include "harness/scenarios/scenario.h"

namespace assay::harness {
namespace {

std::optional<std::string> is_not_in_this_release(const ScenarioContext&) {
  return "not in this release (0.1)";
}

void refuse_to_run(ScenarioContext&, Recorder&) {
  throw InternalError("a scenario that is not in this release was run");
}

Scenario later(std::string_view key, std::string_view description) {
  Scenario scenario;
  scenario.key = key;
  scenario.description = description;
  scenario.needs.name = std::string(key);
  scenario.is_in_this_release = false;
  scenario.reason_not_to_run = is_not_in_this_release;
  scenario.run = refuse_to_run;
  return scenario;
}

std::vector<Scenario> make_scenarios() {
  return {environment_scenario(),
          storage_scenario(),
          smoke_scenario(),
          timing_scenario(),
          later("data", "is the device waiting for data; workers and batch swept"),
          later("transfer", "copies between host and device, and between devices"),
          later("scale", "one size raised at a time, to the knee or out of memory"),
          resume_scenario(),
          later("faults", "full and read-only disks, torn checkpoints, hung ranks, NaN"),
          later("distributed", "several ranks: efficiency, communication, equal replicas"),
          later("precision", "bf16 and fp16 against fp32"),
          later("memory", "need broken down; the out-of-memory ladder"),
          equivalence_scenario(),
          later("loss_curve", "does the loss fall as it should"),
          later("soak", "a long run: leaks, throttling, drift"),
          later("selftest", "planted faults are caught, clean runs raise nothing")};
}

}  // namespace

std::span<const Scenario> all_scenarios() {
  static const std::vector<Scenario> scenarios = make_scenarios();
  return scenarios;
}

const Scenario* find_scenario_by_key(std::string_view key) {
  for (const Scenario& scenario : all_scenarios()) {
    if (scenario.key == key) return &scenario;
  }
  return nullptr;
}

std::vector<std::string> scenario_keys() {
  std::vector<std::string> keys;
  for (const Scenario& scenario : all_scenarios()) keys.emplace_back(scenario.key);
  return keys;
}

std::vector<ScenarioNeeds> needs_of_scenarios() {
  std::vector<ScenarioNeeds> needs;
  for (const Scenario& scenario : all_scenarios()) {
    if (scenario.is_in_this_release) needs.push_back(scenario.needs);
  }
  return needs;
}

}  // namespace assay::harness
