#include "trainer/launch/restart_policy.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace assay::launch {
namespace {

constexpr double kLeastGraceSeconds = 30;  // torchrun's
// After a failure the ranks cannot agree on anything, so that only a file that is being written is
// worth waiting for; the others end within milliseconds unless they hang.
constexpr double kSecondsAfterFailure = 3;
// A save in progress is worth more than a quick end, unless the user has said how long.
constexpr double kLongestSaveSeconds = 600;

}  // namespace

std::string reason_not_to_restart(const RankEnd& cause, const RestartState& state) {
  const int code = launcher_code(cause);
  for (const ExitCode lasting : {ExitCode::kUsage, ExitCode::kData, ExitCode::kCheckpoint}) {
    if (code == static_cast<int>(lasting)) {
      return cat("exit code ", code, " would come again at once");
    }
  }
  if (cause.rank < 0) return "a node is gone";
  if (state.restarts_done >= state.max_restarts) {
    return state.max_restarts == 0 ? std::string("none was asked for (--max-restarts 0)")
                                   : cat("--max-restarts ", state.max_restarts, " is used up");
  }
  if (state.restarts_done > 0 && state.highest_step <= state.highest_step_before) {
    return cat("after the last one no step was finished beyond ", state.highest_step_before);
  }
  return "";
}

double grace_period(const std::optional<double>& given, double longest_save_seconds) {
  return given ? *given : std::max(kLeastGraceSeconds, 2 * longest_save_seconds + 10);
}

double kill_time(const StopSituation& situation, const RankProgress& progress) {
  const bool is_saving = progress.phase == RankPhase::kCheckpoint;
  double seconds = situation.grace_seconds;
  if (situation.is_after_failure && !progress.is_writing)
    seconds = std::min(seconds, kSecondsAfterFailure);
  // After a failure a rank may be in this phase for want of the one that is lost.
  const bool is_waited_for = situation.is_after_failure ? progress.is_writing : is_saving;
  if (is_waited_for && !situation.is_grace_given) seconds = std::max(seconds, kLongestSaveSeconds);
  return situation.told_at + seconds;
}

}  // namespace assay::launch
