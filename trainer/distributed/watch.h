// Watches over one rank from a thread of its own: publishes where the rank stands, and ends the
// process when a step hangs or another rank has failed, since a collective that waits for a lost
// rank cannot be left otherwise. One at a time in a process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/distributed/control_store.h"
#include "trainer/distributed/rank_record.h"
#include "trainer/launch/progress_page.h"

namespace assay::distributed {

// Collectives that a rank has started; written by the main and autograd's threads.
struct CollectiveCount {
  std::atomic<int64_t> started{0};
  std::atomic<int64_t> elements{0};          // of the last one
  std::atomic<int64_t> planned_elements{0};  // what every rank expects there
  std::atomic<int64_t> steps_begun{0};
  std::atomic<int64_t> before_step{0};     // started when the present step began
  std::atomic<int64_t> in_step_before{0};  // that the step before it started
};

class Watch {
 public:
  struct Settings {
    double collective_timeout_seconds = 600;
    double save_timeout_seconds = 3600;
    // Called from the watch's thread with the reason; does not return.
    std::function<void(const std::string& message)> end_process;
  };
  Watch(const ControlStore& store, std::vector<RankRecord> ranks, int64_t own_rank,
        launch::ProgressPage& page, const CollectiveCount& count, Settings settings);
  ~Watch();  // stops and joins
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  struct State;  // of the source file

 private:
  std::shared_ptr<State> state_;
};

}  // namespace assay::distributed
