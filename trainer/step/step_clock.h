// Times the phases of a step on one timeline: the host clock on a CPU, events of the compute stream
// on CUDA (so a host wait counts only while that stream is idle). Never synchronises on the way.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include "trainer/metrics/step_record.h"

namespace assay::step {

enum class Phase { kDataWait, kH2d, kForward, kBackward, kComm, kOptimizer, kCheckpoint, kOther };

// The marks of one step. Consecutive marks bound intervals; what no phase claims is `other`.
// One thread at a time.
class StepMarks {
 public:
  struct Mark {
    Phase phase;  // of the interval that ends here
    double host_seconds = 0;
    std::unique_ptr<c10::Event> event;
  };
  std::vector<Mark> marks;
  std::unique_ptr<Mark> comm_start;  // the first reduction of gradients; null on one rank
};

class StepClock {
 public:
  explicit StepClock(const c10::Device& device);
  // Starts a step where the last one ended (the first: now).
  void begin_step();
  // Ends the interval since the last mark and books it to `phase`.
  void mark(Phase phase);
  // The first reduction of the step's gradients starts here, beside backward. Like mark(), it may
  // be called from autograd's thread while the main one waits for it.
  void mark_comm_start();
  // Starts the next step now: what happened since the last one ended belongs to none.
  void restart();
  // The step's marks, to be read once the device has passed them (one step late on CUDA).
  StepMarks end_step();

 private:
  StepMarks::Mark make(Phase phase) const;
  void push(Phase phase);
  c10::Device device_;
  StepMarks current_;
};

struct StepTimes {
  double time_ms = 0;
  metrics::PhaseTimes phases;
  double comm_total_ms = 0;  // first reduction's start to the last one's end, hidden part included
};
// Blocks until the device has passed the last mark.
StepTimes read_times(StepMarks& marks);

}  // namespace assay::step
