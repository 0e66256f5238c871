// One kill of one run: started, killed, resumed to the end, and compared with the control run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/continuity.h"
#include "harness/kill_plan.h"
#include "harness/ledger.h"
#include "harness/scenario_context.h"

namespace assay::harness {

struct ResumeSetting {
  Workload workload;
  int64_t steps = 0;
  int64_t save_steps = 0;
  double tolerance = 0;  // relative; between "within tolerance" and "broken"
  uint64_t seed = 0;
};

struct ControlRun {
  TrialResult trial;
  std::string folder;
  std::string run_dir;
};

struct ResumeResult {
  std::string workload;
  std::string kill;
  bool is_landed = false;       // the session to be killed did not simply reach its target
  std::string problem;          // why the case is bad before any comparison; empty if it is not
  std::string sigterm_problem;  // only for the kill "sigterm": exit code or save missing
  int64_t last_step = 0;        // finished before the kill
  int64_t resumed_from = 0;     // step of the newest checkpoint then; 0: none was committed
  int64_t lost_steps() const { return last_step - resumed_from; }
  std::optional<double> restart_seconds;  // from the restart to the first new step
  std::string step_problem;               // steps 1..N once each in metrics.jsonl, or which is not
  ContinuityVerdict continuity;
  Ledger ledger;
  std::string metrics_file;  // relative to the acceptance folder, like the next
  std::vector<std::string> evidence;
};

// The words that every run of a case has: deterministic, ids logged, the same target and saves.
std::vector<std::string> resume_words(const ResumeSetting& setting);

ControlRun run_control(ScenarioContext& context, const ResumeSetting& setting);

// Kills and resumes; tries again at an earlier moment if the run ended before the kill.
ResumeResult kill_and_resume(ScenarioContext& context, const ResumeSetting& setting,
                             const ControlRun& control, const Kill& kill);

}  // namespace assay::harness
