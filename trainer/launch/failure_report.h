// How the ranks of a group ended, which of them is to blame, and how to say so. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/launch/progress_page.h"

namespace assay::launch {

// What this launcher had done to a rank before it ended.
enum class RankTreatment {
  kNone,         // left alone: its end is its own
  kAskedToStop,  // a stop signal from outside was passed on
  kEnded,        // told to end because the group had failed: its end explains nothing
  kOverdue,      // killed, because it did not end in time after a stop signal
};

struct RankEnd {
  int64_t rank = 0;  // -1: no rank, but a node that was lost; `message` names it
  int64_t local_rank = 0;
  int64_t pid = 0;
  std::string host;
  int exit_code = 0;      // if it ended itself
  int signal_number = 0;  // that killed it; 0: it ended itself
  RankTreatment treatment = RankTreatment::kNone;
  bool was_stopped = false;  // it still runs, but was found stopped (SIGSTOP)
  bool is_accused = false;   // it still runs, but the others ended and name it
  double ended_at = 0;       // monotonic_seconds()
  RankProgress progress;
  std::string message;  // of its error file
};

RankEnd lost_node(const std::string& text);  // as a cause of failure

std::string to_json(const RankEnd& end);
// Nothing if the text is anything else.
std::optional<RankEnd> rank_end_from_json(const std::string& text);

// 128 + N if signal N killed it; 5 for a stopped rank and a lost node.
int launcher_code(const RankEnd& end);

// The end to blame: one that a signal killed or that failed for a reason of its own comes before a
// stopped one, that before one that only lost its peers (exit code 5) or that ended because another
// rank had failed (progress.blamed_rank); among equals the one that most of these name, then the
// first.
// `stop_signal`: what was passed on to all ranks, 0 for nothing; ends that it explains are no
// failures. nullptr if nobody is to blame.
const RankEnd* root_cause(const std::vector<RankEnd>& ends, int stop_signal);
// The rank that most of those name that ended for want of another; -1 if none does.
int64_t blamed_by_most(const std::vector<RankEnd>& ends);
// No better one can come: it failed for a reason of its own.
bool is_certain(const RankEnd& cause);

// How a group ended as a whole, all ranks having ended.
struct GroupOutcome {
  int exit_code = 0;
  std::optional<RankEnd> cause;  // of a failure; none: well, or stopped as asked (128 + N)
  int64_t highest_step = 0;      // last finished step of the farthest rank
};
// `cause`: what made the group fail, as found at the time.
GroupOutcome outcome_of(const std::vector<RankEnd>& ends, int stop_signal,
                        const std::optional<RankEnd>& cause);
std::string to_json(const GroupOutcome& outcome);
std::optional<GroupOutcome> outcome_from_json(const std::string& text);

// Lines for the terminal; what the rank itself said comes last.
std::string failure_text(const RankEnd& cause);

}  // namespace assay::launch
