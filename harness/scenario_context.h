// What a scenario may use: the suite, the machine's record, the trainer, a place for evidence, and
// the way to run trials within the limits of time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/interrupt.h"
#include "harness/recorder.h"
#include "harness/suite.h"
#include "harness/trial.h"
#include "platform/environment.h"

namespace assay::harness {

// Thrown when --time-budget is used up.
class TimeBudgetError : public CouldNotRunError {
 public:
  using CouldNotRunError::CouldNotRunError;
};

struct ContextConfig {
  std::string output = {};       // absolute path of the acceptance folder
  std::string config_file = {};  // absolute path of the user's configuration; empty: none
  bool keeps_checkpoints = false;
  std::optional<double> deadline_seconds = {};  // monotonic_seconds() at which the budget ends
};

// Main thread only; borrows suite, environment and interrupt.
class ScenarioContext {
 public:
  ScenarioContext(const Suite& suite, const platform::Environment& environment,
                  Interrupt& interrupt, ContextConfig config);

  const Suite& suite() const { return suite_; }
  const platform::Environment& environment() const { return environment_; }
  Interrupt& interrupt() { return interrupt_; }
  const std::string& output() const { return config_.output; }
  bool has_user_config() const { return !config_.config_file.empty(); }

  // The user's configuration as the only workload ("config"), or the suite's of these names.
  std::vector<Workload> workloads(const std::vector<std::string>& names) const;

  // evidence/<scenario>/<trial>, absolute; and a path below the output relative to it.
  std::string evidence_folder(std::string_view scenario, std::string_view trial) const;
  std::string relative(const std::string& path) const;

  // A request that runs `train` with a workload's options and `more`, on the GPU if there is one,
  // into <folder>/run unless `more` says otherwise.
  TrialRequest train(const std::string& folder, const Workload& workload,
                     const std::vector<std::string>& more) const;
  // The bare command `train <words>`.
  TrialRequest train_words(const std::string& folder, const std::vector<std::string>& words) const;
  // Runs a trial; throws TimeBudgetError, InterruptedError. Reports progress.
  TrialResult run(TrialRequest request);

  // How many trials the scenario expects to run; for the time left.
  void expect_trials(int64_t count) { expected_trials_ = count; }
  double done_fraction() const;
  void begin_scenario();
  std::function<void(const std::string&)> on_progress;  // called with the trial's name

  // Thins out a judged run folder unless checkpoints are kept.
  void drop_weights(const std::string& run_dir) const;

 private:
  const Suite& suite_;
  const platform::Environment& environment_;
  Interrupt& interrupt_;
  ContextConfig config_;
  int64_t expected_trials_ = 0;
  int64_t done_trials_ = 0;
};

}  // namespace assay::harness
