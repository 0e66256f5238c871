// Runs a job on this node from its first attempt to its end, in step with the other nodes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/launch/launch_log.h"
#include "trainer/launch/output_router.h"
#include "trainer/launch/rendezvous.h"
#include "trainer/launch/signals.h"
#include "trainer/launch/worker_group.h"

namespace assay::launch {

// Main thread only, one job. Node 0 (a single node too) decides how an attempt goes on once all
// nodes have told how theirs ended; the others do as they are told.
class Supervisor {
 public:
  Supervisor(const GroupPlan& plan, const LaunchLog& log);
  // The exit code of the job. Throws LaunchError if the nodes do not meet or nothing can start.
  int run();

 private:
  struct Decision {
    bool is_restart = false;
    int exit_code = 0;
    std::optional<RankEnd> cause;
  };
  NodePlace meet(int64_t attempt);
  NodePlace meet_alone();
  Decision run_attempt(int64_t attempt, const NodePlace& place);
  void wait_for_news(bool is_hasty);
  void take_signals(WorkerGroup* group);
  void take_events(WorkerGroup& group);
  void take_event(const NodeEvent& event, WorkerGroup& group);
  void tell_progress(WorkerGroup& group);
  bool is_decider() const { return !rendezvous_ || rendezvous_->is_server(); }
  std::optional<Decision> decide(int64_t attempt);
  void pass_on(const Decision& decision, int64_t attempt);
  void tell(NodeEventKind kind, int64_t number, const std::string& text);
  int finish(const Decision& decision) const;

  const GroupPlan& plan_;
  const LaunchLog& log_;
  SignalInbox inbox_;
  OutputRouter router_;
  std::unique_ptr<Rendezvous> rendezvous_;  // none for a single node
  int store_fd_ = -1;
  int64_t own_node_ = 0;
  int stop_signal_ = 0;     // passed on to the ranks
  int local_signal_ = 0;    // the first that came here
  int killing_signal_ = 0;  // the second, here or elsewhere
  int64_t highest_step_before_ = 0;
  // Of the attempt that runs:
  std::vector<RankEnd> reported_;             // causes of failure by arrival, of all nodes
  std::map<int64_t, GroupOutcome> outcomes_;  // by node
  bool has_told_cause_ = false;
  bool has_told_end_ = false;
  std::optional<Decision> ordered_;  // by node 0, or because that is lost
};

}  // namespace assay::launch
