// A scenario: key, description, what it needs of a suite, can it run here, run. One .cpp each.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/recorder.h"
#include "harness/scenario_context.h"
#include "harness/suite.h"

namespace assay::harness {

struct Scenario {
  std::string_view key;          // contract.md's name
  std::string_view description;  // one line
  ScenarioNeeds needs;
  bool is_in_this_release = true;
  // Why it cannot run here; nothing if it can.
  std::optional<std::string> (*reason_not_to_run)(const ScenarioContext&);
  void (*run)(ScenarioContext&, Recorder&);
};

// Every scenario of contract.md, in its order; those of later releases too.
std::span<const Scenario> all_scenarios();
const Scenario* find_scenario_by_key(std::string_view key);
std::vector<std::string> scenario_keys();
std::vector<ScenarioNeeds> needs_of_scenarios();  // of this release's

Scenario environment_scenario();
Scenario storage_scenario();
Scenario smoke_scenario();
Scenario timing_scenario();
Scenario resume_scenario();
Scenario equivalence_scenario();

inline std::optional<std::string> can_always_run(const ScenarioContext&) { return std::nullopt; }

}  // namespace assay::harness
