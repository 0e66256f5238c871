// Runs the scenarios of a suite one after the other and keeps the report up to date.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/acceptance_folder.h"
#include "harness/interrupt.h"
#include "harness/progress_line.h"
#include "harness/report/report.h"
#include "harness/scenario_context.h"
#include "harness/scenarios/scenario.h"
#include "harness/suite.h"
#include "platform/environment.h"

namespace assay::harness {

struct AcceptanceRequest {
  Suite suite;
  std::string suite_text = {};
  std::vector<std::string> named_scenarios = {};  // empty: all of the suite
  std::string config_file = {};                   // absolute; empty: none
  std::string output = {};                        // absolute
  std::string command = {};
  Language language = Language::kEnglish;
  std::optional<double> time_budget_seconds = {};
  bool keeps_checkpoints = false;
};

struct AcceptanceResult {
  Report report;
  int signal_number = 0;  // that ended it early; 0: none
};

// Leaves a finished, hashed folder in every case but an internal error. Throws ConfigError before
// anything runs: unknown scenario names, a folder that cannot be used, another suite or
// configuration than the acceptance that the folder holds.
AcceptanceResult run_acceptance(const AcceptanceRequest& request);

// One scenario with everything that can go wrong turned into a verdict: what the trainer left
// cannot be read -> fail; the machine or the budget does not allow it -> could_not_run. Sets
// `signal_number` if a signal stopped it.
ScenarioResult run_scenario(const Scenario& scenario, const ScenarioSettings& settings,
                            ScenarioContext& context, int* signal_number);

// "CPU only: <model>, 2 CPUs" or "1 x NVIDIA H200".
std::string describe_device(const platform::Environment& environment);

// 128 + N, 6, 8 or 0.
int exit_code_of_acceptance(const AcceptanceResult& result);

}  // namespace assay::harness
