#include "trainer/launch/worker_group.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "base/clock.h"
#include "base/text.h"
#include "trainer/launch/restart_policy.h"
#include "trainer/launch/signals.h"
#include "trainer/launch/worker_environment.h"

namespace assay::launch {
namespace {

// When a rank dies, its peers lose their connection and may end before the dead one is seen.
constexpr double kDoubtSeconds = 1;

}  // namespace

WorkerGroup::WorkerGroup(const GroupPlan& plan, const NodePlace& place, int64_t attempt,
                         int store_fd, OutputRouter& router, const LaunchLog& log)
    : plan_(plan), log_(log) {
  for (int64_t local_rank = 0; local_rank < plan.num_local_ranks; ++local_rank) {
    WorkerSpec spec;
    spec.program = plan.program;
    spec.arguments = plan.options.train_words;
    spec.arguments.insert(spec.arguments.begin(), "train");
    spec.rank = place.first_rank + local_rank;
    spec.local_rank = local_rank;
    spec.environment = worker_environment(
        plan.options, {place, plan.num_local_ranks, local_rank, attempt}, std::getenv);
    spec.store_fd = spec.rank == 0 ? store_fd : -1;
    spec.streams = router.open(spec.rank, local_rank);
    spec.error_file = router.error_file(local_rank);
    if (static_cast<size_t>(local_rank) < plan.cpus.size()) {
      spec.cpus = plan.cpus[static_cast<size_t>(local_rank)];
    }
    members_.push_back({.worker = std::make_unique<Worker>(spec)});
  }
  router.close_child_ends();
}

void WorkerGroup::look() {
  for (Member& member : members_) member.worker->poll(treatment_of(member));
  find_cause();
  kill_overdue();
}

RankTreatment WorkerGroup::treatment_of(const Member& member) const {
  if (member.is_overdue) return RankTreatment::kOverdue;
  if (is_ending_) return RankTreatment::kEnded;
  return stop_signal_ != 0 ? RankTreatment::kAskedToStop : RankTreatment::kNone;
}

bool WorkerGroup::has_ended() const {
  return std::none_of(members_.begin(), members_.end(),
                      [](const Member& member) { return member.worker->is_running(); });
}

std::vector<RankEnd> WorkerGroup::ends() const {
  std::vector<RankEnd> ends;
  for (const Member& member : members_) {
    if (!member.worker->is_running()) ends.push_back(member.worker->end());
  }
  return ends;
}

std::vector<RankEnd> WorkerGroup::stopped() const {
  std::vector<RankEnd> found;
  for (const Member& member : members_) {
    if (!member.worker->is_stopped()) continue;
    found.push_back(member.worker->standing());
    found.back().was_stopped = true;
  }
  return found;
}

std::optional<RankEnd> WorkerGroup::find_accused() const {
  const std::vector<RankEnd> accusers = ends();
  const int64_t blamed = blamed_by_most(accusers);
  for (const Member& member : members_) {
    if (!member.worker->is_running() || member.worker->is_stopped()) continue;
    RankEnd standing = member.worker->standing();
    if (standing.rank != blamed) continue;
    standing.is_accused = true;
    for (const RankEnd& accuser : accusers) {
      if (accuser.progress.blamed_rank == blamed && standing.message.empty()) {
        standing.message = accuser.message;
      }
    }
    return standing;
  }
  return std::nullopt;
}

void WorkerGroup::find_cause() {
  if (cause_ || is_ending_) return;
  std::vector<RankEnd> candidates = ends();
  const RankEnd* cause = root_cause(candidates, stop_signal_);
  if (cause == nullptr) return;
  if (!is_certain(*cause)) {
    if (doubt_since_ == 0) doubt_since_ = monotonic_seconds();
    const std::vector<RankEnd> still = stopped();
    const bool may_another_come = !has_ended() && still.empty();
    if (may_another_come && monotonic_seconds() - doubt_since_ < kDoubtSeconds) return;
    candidates.insert(candidates.end(), still.begin(), still.end());
    if (const auto accused = find_accused()) candidates.push_back(*accused);
    cause = root_cause(candidates, stop_signal_);
  }
  cause_ = *cause;
  end_all();
}

void WorkerGroup::kill_overdue() {
  if (!is_running_out()) return;
  StopSituation situation;
  situation.told_at = is_ending_ ? ending_at_ : stop_at_;
  situation.grace_seconds = grace_period(plan_.options.grace_seconds, longest_save());
  situation.is_grace_given = plan_.options.grace_seconds.has_value();
  situation.is_after_failure = is_ending_;
  for (Member& member : members_) {
    if (!member.worker->is_running() || member.is_killed) continue;
    // A stopped rank cannot act on any signal but the last one.
    const bool is_helpless = is_ending_ && member.worker->is_stopped();
    const double limit = kill_time(situation, member.worker->progress());
    if (!is_helpless && monotonic_seconds() < limit) continue;
    const std::string why =
        is_helpless ? " is stopped and cannot hear that it must end"
                    : cat(" did not end within ",
                          duration_text(monotonic_seconds() - situation.told_at), " of being told");
    log_.warning(cat("rank ", member.worker->rank(), why, "; it is killed"));
    member.is_killed = true;
    member.is_overdue = !is_ending_;
    member.worker->kill_group();
  }
}

double WorkerGroup::longest_save() const {
  double longest = 0;
  for (const Member& member : members_) {
    longest = std::max(longest, member.worker->progress().longest_save_seconds);
  }
  return longest;
}

GroupOutcome WorkerGroup::outcome() const { return outcome_of(ends(), stop_signal_, cause_); }

void WorkerGroup::forward(int signal_number) {
  if (stop_signal_ != 0 || is_ending_) return;
  stop_signal_ = signal_number;
  stop_at_ = monotonic_seconds();
  const double grace = grace_period(plan_.options.grace_seconds, longest_save());
  log_.info(
      cat(signal_text(signal_number), " is passed on to the ranks; their grace period is ",
          duration_text(grace),
          plan_.options.grace_seconds ? " (--grace-period)" : ", more for a rank that is saving",
          ", then SIGKILL follows"));
  for (const Member& member : members_) member.worker->send(signal_number);
}

void WorkerGroup::end_all() {
  if (is_ending_) return;
  is_ending_ = true;
  ending_at_ = monotonic_seconds();
  // A second signal would cut a save that the first one asked for.
  if (stop_signal_ != 0) return;
  for (const Member& member : members_) member.worker->send(SIGTERM);
}

void WorkerGroup::kill_all() {
  if (!is_ending_) ending_at_ = monotonic_seconds();
  is_ending_ = true;
  for (const Member& member : members_) member.worker->kill_group();
}

}  // namespace assay::launch
