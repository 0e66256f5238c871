// The ranks of this node in one attempt: started together, watched, ended together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/launch/failure_report.h"
#include "trainer/launch/launch_log.h"
#include "trainer/launch/launch_options.h"
#include "trainer/launch/output_router.h"
#include "trainer/launch/rendezvous.h"
#include "trainer/launch/worker.h"

namespace assay::launch {

// What stays the same over all attempts.
struct GroupPlan {
  LaunchOptions options;
  std::string program;
  int64_t num_local_ranks = 1;
  std::vector<std::vector<int64_t>> cpus;  // by local rank; empty ones are not bound
};

// Main thread only. The first rank that fails is the cause; the others are then told to end, and
// killed when their time is over. The destructor kills what still runs.
class WorkerGroup {
 public:
  // `store_fd`: a listening socket for global rank 0, -1 where another node has it. Throws
  // LaunchError; what was started by then is killed.
  WorkerGroup(const GroupPlan& plan, const NodePlace& place, int64_t attempt, int store_fd,
              OutputRouter& router, const LaunchLog& log);

  // Sees who has ended, finds the cause of a failure, kills who is overdue. Never blocks.
  void look();
  bool has_ended() const;
  bool is_running_out() const { return stop_signal_ != 0 || is_ending_; }
  // The failure that ends the group, once it is sure.
  const std::optional<RankEnd>& cause() const { return cause_; }
  GroupOutcome outcome() const;  // once all have ended
  double longest_save() const;

  void forward(int signal_number);  // a request to stop, to all ranks
  void end_all();                   // the group has failed, here or elsewhere
  void kill_all();

 private:
  struct Member {
    std::unique_ptr<Worker> worker;
    bool is_killed = false;   // by SIGKILL of ours
    bool is_overdue = false;  // that, after a stop signal
  };
  RankTreatment treatment_of(const Member& member) const;
  void find_cause();
  // The rank that the ended ones name, if it still runs; with what they say.
  std::optional<RankEnd> find_accused() const;
  void kill_overdue();
  std::vector<RankEnd> ends() const;     // of those that have ended
  std::vector<RankEnd> stopped() const;  // of those that were found stopped

  const GroupPlan& plan_;
  const LaunchLog& log_;
  std::vector<Member> members_;
  std::optional<RankEnd> cause_;
  double doubt_since_ = 0;  // a rank has failed, but maybe only because of another; 0: none has
  int stop_signal_ = 0;
  double stop_at_ = 0;
  bool is_ending_ = false;
  double ending_at_ = 0;
};

}  // namespace assay::launch
