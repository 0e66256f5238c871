#include "trainer/launch/supervisor.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/version.h"
#include "trainer/launch/address.h"
#include "trainer/launch/endpoint.h"
#include "trainer/launch/restart_policy.h"

namespace assay::launch {
namespace {

constexpr double kHastySeconds = 0.02;  // while deadlines run or causes are weighed

OutputSettings output_settings(const LaunchOptions& options) {
  const char* prefix = std::getenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  return {.log_dir = options.log_dir,
          .run_id = options.run_id,
          .role = options.role,
          .prefix_template = prefix == nullptr ? "" : prefix,
          .redirects = options.redirects,
          .tee = options.tee,
          .shown_ranks = options.shown_ranks,
          .stdout_filters = options.stdout_filters,
          .stderr_filters = options.stderr_filters};
}

// A single node needs no door to the outside, whatever its name resolves to.
int listen_on_loopback(const LaunchOptions& options) {
  if (is_loopback(options.master_addr)) return listen_on(options.master_addr, options.store_port);
  return listen_on(is_own_host("127.0.0.1") ? "127.0.0.1" : "::1", options.store_port);
}

int listen_for_all_nodes(const LaunchOptions& options) {
  const bool is_exact =
      is_numeric_address(options.endpoint_host) && is_own_host(options.endpoint_host);
  return listen_on(is_exact ? options.endpoint_host : "", options.store_port);
}

RendezvousRequest request_of(const GroupPlan& plan) {
  RendezvousRequest request;
  request.host = plan.options.endpoint_host;
  request.port = plan.options.endpoint_port;
  request.run_id = plan.options.run_id;
  request.num_nodes = plan.options.num_nodes;
  request.node_rank = plan.options.node_rank;
  request.num_local_ranks = plan.num_local_ranks;
  request.build = cat(version_string(), " (commit ", git_commit(), ")");
  request.join_timeout_seconds = plan.options.join_timeout_seconds;
  request.keep_alive_seconds = plan.options.keep_alive_seconds;
  request.keep_alive_misses = plan.options.keep_alive_misses;
  request.local_addr = plan.options.local_addr;
  return request;
}

}  // namespace

Supervisor::Supervisor(const GroupPlan& plan, const LaunchLog& log)
    : plan_(plan),
      log_(log),
      inbox_(plan.options.signals),
      router_(output_settings(plan.options)) {}

int Supervisor::run() {
  for (int64_t attempt = 0;; ++attempt) {
    NodePlace place;
    try {
      place = plan_.options.num_nodes > 1 ? meet(attempt) : meet_alone();
      take_signals(nullptr);
    } catch (const LaunchError&) {
      if (local_signal_ == 0) throw;
    }
    if (local_signal_ != 0) {  // nothing runs that could be told
      if (store_fd_ >= 0) close(std::exchange(store_fd_, -1));
      return 128 + local_signal_;
    }
    const Decision decision = run_attempt(attempt, place);
    if (!decision.is_restart) return finish(decision);
  }
}

NodePlace Supervisor::meet_alone() {
  store_fd_ = listen_on_loopback(plan_.options);
  NodePlace place;
  place.world_size = plan_.num_local_ranks;
  place.master_addr = address_of_socket(store_fd_);
  place.master_port = port_of_socket(store_fd_);
  return place;
}

NodePlace Supervisor::meet(int64_t attempt) {
  if (!rendezvous_) {
    RendezvousRequest request = request_of(plan_);
    request.is_cancelled = [this] {
      take_signals(nullptr);
      return local_signal_ != 0;
    };
    log_.info(cat("waiting for ", request.num_nodes, " nodes at ",
                  endpoint_text(request.host, request.port), ", at most ",
                  duration_text(request.join_timeout_seconds)));
    rendezvous_ = open_rendezvous(request);
  }
  const NodePlace place = rendezvous_->meet(attempt, [this] {
    store_fd_ = listen_for_all_nodes(plan_.options);
    return port_of_socket(store_fd_);
  });
  own_node_ = place.group_rank;
  return place;
}

Supervisor::Decision Supervisor::run_attempt(int64_t attempt, const NodePlace& place) {
  reported_.clear();
  outcomes_.clear();
  has_told_cause_ = has_told_end_ = false;
  ordered_.reset();
  router_.begin_attempt(attempt);
  log_.info(cat("ranks ", place.first_rank, " to ", place.first_rank + plan_.num_local_ranks - 1,
                " of ", place.world_size, " start on ", host_name(),
                place.num_nodes > 1 ? cat(" (node ", place.group_rank, ")") : "", ", store at ",
                endpoint_text(place.master_addr, place.master_port),
                attempt > 0 ? cat(", restart ", attempt) : ""));
  WorkerGroup group(plan_, place, attempt, store_fd_, router_, log_);
  // Rank 0 has it now. With a second holder, connections to a dead rank 0 would hang.
  if (store_fd_ >= 0) close(std::exchange(store_fd_, -1));
  while (true) {
    const bool is_hasty = group.is_running_out() || !reported_.empty();
    wait_for_news(is_hasty);
    router_.pump();
    take_signals(&group);
    take_events(group);
    group.look();
    tell_progress(group);
    if (!group.has_ended()) continue;
    router_.finish();
    std::optional<Decision> decision = is_decider() ? decide(attempt) : ordered_;
    if (killing_signal_ != 0) decision = Decision{false, 128 + killing_signal_, std::nullopt};
    if (!decision) continue;
    if (is_decider()) pass_on(*decision, attempt);
    highest_step_before_ = std::max(highest_step_before_, outcomes_[own_node_].highest_step);
    return *decision;
  }
}

// Returns at once when there is something to do.
void Supervisor::wait_for_news(bool is_hasty) {
  std::vector<pollfd> sources = {{inbox_.fd(), POLLIN, 0}};
  if (rendezvous_) sources.push_back({rendezvous_->event_fd(), POLLIN, 0});
  for (const int fd : router_.readable()) sources.push_back({fd, POLLIN, 0});
  const double longest = plan_.options.monitor_interval_seconds;
  const double seconds = is_hasty ? std::min(kHastySeconds, longest) : std::min(longest, 1.0);
  poll(sources.data(), sources.size(), static_cast<int>(seconds * 1e3) + 1);
}

void Supervisor::take_signals(WorkerGroup* group) {
  while (const std::optional<int> number = inbox_.next()) {
    if (local_signal_ == 0) {
      local_signal_ = *number;
      if (group == nullptr || stop_signal_ != 0) continue;
      stop_signal_ = *number;
      group->forward(*number);
      tell(NodeEventKind::kStop, *number, "");
      continue;
    }
    if (group == nullptr) continue;
    log_.warning(cat(signal_text(*number), " came after ", signal_text(local_signal_),
                     ": all ranks are killed"));
    killing_signal_ = *number;
    group->kill_all();
    tell(NodeEventKind::kKill, *number, "");
  }
}

void Supervisor::take_events(WorkerGroup& group) {
  if (!rendezvous_) return;
  while (const std::optional<NodeEvent> event = rendezvous_->next_event()) {
    take_event(*event, group);
  }
}

void Supervisor::take_event(const NodeEvent& event, WorkerGroup& group) {
  const auto number = static_cast<int>(std::clamp<int64_t>(event.number, 0, 255));
  switch (event.kind) {
    case NodeEventKind::kFailed:
      reported_.push_back(rank_end_from_json(event.text)
                              .value_or(lost_node(cat("the report of node ", event.node))));
      reported_.back().ended_at = monotonic_seconds();
      group.end_all();
      break;
    case NodeEventKind::kEnded:
      outcomes_[event.node] =
          outcome_from_json(event.text)
              .value_or(GroupOutcome{static_cast<int>(ExitCode::kLaunch), std::nullopt, 0});
      break;
    case NodeEventKind::kStop:
      if (stop_signal_ == 0) group.forward(number);
      if (stop_signal_ == 0) stop_signal_ = number;
      break;
    case NodeEventKind::kKill:
      killing_signal_ = number;
      group.kill_all();
      break;
    case NodeEventKind::kLost:
      reported_.push_back(lost_node(event.text));
      reported_.back().ended_at = monotonic_seconds();
      outcomes_[event.node] = GroupOutcome{static_cast<int>(ExitCode::kLaunch), std::nullopt, 0};
      group.end_all();
      // Without node 0 nobody decides any more, and nothing can start again.
      if (event.node == 0 && !ordered_) {
        ordered_ = Decision{false, static_cast<int>(ExitCode::kLaunch), reported_.back()};
      }
      break;
    case NodeEventKind::kRestart:
      ordered_ = Decision{true, 0, std::nullopt};
      break;
    case NodeEventKind::kEnd:
      ordered_ = Decision{false, number, rank_end_from_json(event.text)};
      break;
  }
}

void Supervisor::tell_progress(WorkerGroup& group) {
  if (group.cause() && !has_told_cause_) {
    has_told_cause_ = true;
    reported_.push_back(*group.cause());
    reported_.back().ended_at = monotonic_seconds();
    tell(NodeEventKind::kFailed, 0, to_json(*group.cause()));
  }
  if (!group.has_ended() || has_told_end_) return;
  has_told_end_ = true;
  const GroupOutcome outcome = group.outcome();
  outcomes_[own_node_] = outcome;
  tell(NodeEventKind::kEnded, 0, to_json(outcome));
}

std::optional<Supervisor::Decision> Supervisor::decide(int64_t attempt) {
  if (static_cast<int64_t>(outcomes_.size()) < plan_.options.num_nodes) return std::nullopt;
  Decision decision;
  RestartState state;
  state.max_restarts = plan_.options.max_restarts;
  state.restarts_done = attempt;
  state.highest_step_before = highest_step_before_;
  std::vector<RankEnd> causes = reported_;
  for (const auto& [node, outcome] : outcomes_) {
    decision.exit_code = std::max(decision.exit_code, outcome.exit_code);
    state.highest_step = std::max(state.highest_step, outcome.highest_step);
    if (outcome.cause) causes.push_back(*outcome.cause);
  }
  highest_step_before_ = std::max(highest_step_before_, state.highest_step);
  // Reports come first: what ended later may be a consequence.
  const RankEnd* cause = root_cause(reported_.empty() ? causes : reported_, 0);
  if (cause == nullptr) return decision;
  decision.cause = *cause;
  decision.exit_code = launcher_code(*cause);
  if (stop_signal_ != 0) return decision;
  const std::string reason = reason_not_to_restart(*cause, state);
  decision.is_restart = reason.empty();
  if (!reason.empty() && plan_.options.max_restarts > 0) {
    log_.info(cat("the group is not started again: ", reason));
  }
  if (decision.is_restart) {
    log_.block(failure_text(*cause));
    log_.info(cat("the group is started again, ", attempt + 1, " of at most ",
                  plan_.options.max_restarts, " restarts"));
  }
  return decision;
}

void Supervisor::pass_on(const Decision& decision, int64_t attempt) {
  if (decision.is_restart) {
    tell(NodeEventKind::kRestart, attempt + 1, "");
  } else {
    tell(NodeEventKind::kEnd, decision.exit_code, decision.cause ? to_json(*decision.cause) : "");
  }
}

void Supervisor::tell(NodeEventKind kind, int64_t number, const std::string& text) {
  if (rendezvous_) rendezvous_->tell({kind, own_node_, number, text});
}

int Supervisor::finish(const Decision& decision) const {
  if (decision.cause) {
    log_.block(failure_text(*decision.cause));
  } else if (decision.exit_code != 0) {
    log_.info(cat("the job has ended as asked, exit code ", decision.exit_code));
  }
  return decision.exit_code;
}

}  // namespace assay::launch
