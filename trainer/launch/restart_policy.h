// Whether a group that failed starts again, and how long a rank may take to end. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/launch/failure_report.h"

namespace assay::launch {

struct RestartState {
  int64_t max_restarts = 0;
  int64_t restarts_done = 0;
  int64_t highest_step_before = 0;  // of all attempts before the one that failed
  int64_t highest_step = 0;         // of the attempt that failed
};
// Why the group does not start again; empty: it does.
std::string reason_not_to_restart(const RankEnd& cause, const RestartState& state);

// Time from a signal to stop to SIGKILL: what was given, or enough for twice the longest save.
double grace_period(const std::optional<double>& given, double longest_save_seconds);

// When a rank that was told to stop at `told_at` is killed, on the clock of `told_at`.
struct StopSituation {
  double told_at = 0;
  double grace_seconds = 30;
  bool is_grace_given = false;  // by the user: never longer than that
  bool is_after_failure = false;
};
double kill_time(const StopSituation& situation, const RankProgress& progress);

}  // namespace assay::launch
