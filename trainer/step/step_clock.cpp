#include "trainer/step/step_clock.h"

#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>

#include "base/clock.h"

namespace assay::step {
namespace {

double& phase_slot(metrics::PhaseTimes& phases, Phase phase) {
  switch (phase) {
    case Phase::kDataWait:
      return phases.data_wait_ms;
    case Phase::kH2d:
      return phases.h2d_ms;
    case Phase::kForward:
      return phases.forward_ms;
    case Phase::kBackward:
      return phases.backward_ms;
    case Phase::kComm:
      return phases.comm_ms;
    case Phase::kOptimizer:
      return phases.optimizer_ms;
    case Phase::kCheckpoint:
      return phases.checkpoint_ms;
    case Phase::kOther:
      break;
  }
  return phases.other_ms;
}

}  // namespace

StepClock::StepClock(const c10::Device& device) : device_(device) {}

void StepClock::push(Phase phase) {
  StepMarks::Mark mark{phase, monotonic_seconds(), nullptr};
  if (device_.is_cuda()) {
    mark.event = std::make_unique<c10::Event>(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    mark.event->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  }
  current_.marks.push_back(std::move(mark));
}

void StepClock::begin_step() {
  if (current_.marks.empty()) push(Phase::kOther);
}

void StepClock::mark(Phase phase) { push(phase); }

void StepClock::restart() {
  current_.marks.clear();
  push(Phase::kOther);
}

StepMarks StepClock::end_step() {
  push(Phase::kOther);
  StepMarks done = std::exchange(current_, StepMarks{});
  push(Phase::kOther);  // the next step starts here
  return done;
}

StepTimes read_times(StepMarks& marks) {
  StepTimes times;
  auto& list = marks.marks;
  if (!list.empty() && list.back().event) list.back().event->synchronize();
  for (size_t i = 1; i < list.size(); ++i) {
    const double interval_ms = list[i].event
                                   ? list[i - 1].event->elapsedTime(*list[i].event)
                                   : (list[i].host_seconds - list[i - 1].host_seconds) * 1e3;
    phase_slot(times.phases, list[i].phase) += interval_ms;
    times.time_ms += interval_ms;
  }
  return times;
}

}  // namespace assay::step
