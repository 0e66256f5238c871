// Watches over one rank from a thread of its own: publishes where the rank stands, and ends the
// process when a step hangs or another rank has failed, since a collective that waits for a lost
// rank cannot be left otherwise.
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
};

// One rank's last sign of life, as the others read it.
struct Beat {
  int64_t number = 0;  // grows four times a second while the process runs
  int64_t step = 0;
  launch::RankPhase phase = launch::RankPhase::kStarting;
  int64_t collectives = 0;
  int64_t elements = 0;
  int64_t planned_elements = 0;
};
std::string to_json(const Beat& beat);
Beat beat_from_json(const std::string& text);  // default values for what cannot be read

struct PeerView {
  RankRecord rank;
  Beat beat;
  bool is_silent = false;  // its beat number stood still
};
// Who holds the others up, in words; empty if the signs do not say. `own` is this rank's view of
// itself. A rank without signs of life, then one that reduced another size than planned, then one
// that started fewer or more collectives than most, then one that is steps behind.
std::string suspect_text(const std::vector<PeerView>& peers, const PeerView& own);

struct FirstFailure {
  int64_t rank = -1;
  int exit_code = 5;
  std::string message;
};

// What the store knows about failures and signs of life. Blocks for up to 1.8 s.
std::string explain_from_store(ControlStore& store, const std::vector<RankRecord>& ranks,
                               int64_t own_rank, const std::string& message);
// The failure reported first, if any.
std::optional<FirstFailure> first_failure(ControlStore& store);
void report_first_failure(ControlStore& store, const FirstFailure& failure);

class Watch {
 public:
  struct Settings {
    double collective_timeout_seconds = 600;
    double save_timeout_seconds = 3600;
    // Called from the watch's thread with the reason; does not return.
    std::function<void(const std::string& message)> end_process;
  };
  Watch(const ControlStore& store, std::vector<RankRecord> ranks, int64_t own_rank,
        const launch::ProgressPage& page, const CollectiveCount& count, Settings settings);
  ~Watch();  // stops and joins
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::distributed
