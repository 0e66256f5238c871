// One run of the trainer as a black box: command line in; exit code or signal, times, memory and a
// log file out. Kills it at a chosen moment if asked to.
//
//   TrialResult result = run_trial({.name = "smoke/first", .folder = ..., .command = ...},
//   interrupt);
#pragma once

#include <csignal>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/interrupt.h"

namespace assay::harness {

struct TrialRequest {
  std::string name = {};                  // for messages and trial.json
  std::string folder = {};                // log.txt, trial.json and samples go here; created
  std::vector<std::string> command = {};  // program and its words
  std::string working_directory = {};     // empty: `folder`
  std::map<std::string, std::string> environment =
      {};  // added; rank and fault variables are dropped
  // Without a new step for this long it hangs, and the group is killed. A slow machine is no hang.
  double stall_limit_seconds = 60;
  std::optional<double> limit_seconds = {};  // of the whole trial (a time budget); then killed too
  std::string run_dir = {};    // the run's output_dir, to watch its metrics; may be empty
  int64_t first_new_step = 1;  // a resumed run's checkpoint step + 1

  std::optional<int64_t> kill_at_step = {};       // once metrics.jsonl has that step
  std::optional<double> kill_after_seconds = {};  // since the start
  int kill_signal = SIGKILL;
  double sample_seconds = 0;  // interval of resource samples; 0: none
};

struct ResourceSample {
  double seconds = 0;  // since the start
  double cpu_seconds = 0;
  uint64_t rss_bytes = 0;
  int64_t step = 0;  // last finished step at that moment
};

struct TrialResult {
  std::optional<int> exit_code;  // one of these two is set
  std::optional<int> signal_number;
  bool is_timed_out = false;  // killed for one of the two limits
  bool is_kill_sent = false;  // while it was still running
  double wall_seconds = 0;
  double cpu_seconds = 0;
  uint64_t peak_rss_bytes = 0;
  int64_t last_step = 0;                     // seen while it ran
  std::optional<double> first_step_seconds;  // from the start to the first new metrics line
  std::vector<ResourceSample> samples;
  bool is_exit(int code) const { return exit_code && *exit_code == code; }
};

// Blocks until the end. Leaves no process behind, also when it throws: CouldNotRunError if the
// program cannot be executed, InterruptedError on a signal to the harness, FileError.
TrialResult run_trial(const TrialRequest& request, Interrupt& interrupt);

// "exit code 0", "signal 9 (killed by the harness)", "no end within 60 s (killed)".
std::string describe_end(const TrialResult& result);

// The trainer: $ASSAY_TRAIN, else assay-train beside this executable. Throws CouldNotRunError
// naming both places if there is none.
std::string find_trainer();

}  // namespace assay::harness
