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

StepMarks::Mark StepClock::make(Phase phase) const {
  StepMarks::Mark mark{phase, monotonic_seconds(), nullptr};
  if (device_.is_cuda()) {
    mark.event = std::make_unique<c10::Event>(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    mark.event->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  }
  return mark;
}

void StepClock::push(Phase phase) { current_.marks.push_back(make(phase)); }

void StepClock::begin_step() {
  if (current_.marks.empty()) push(Phase::kOther);
}

void StepClock::mark(Phase phase) { push(phase); }

void StepClock::mark_comm_start() {
  current_.comm_start = std::make_unique<StepMarks::Mark>(make(Phase::kComm));
}

void StepClock::restart() {
  current_ = {};
  push(Phase::kOther);
}

StepMarks StepClock::end_step() {
  push(Phase::kOther);
  StepMarks done = std::exchange(current_, StepMarks{});
  push(Phase::kOther);  // the next step starts here
  return done;
}

namespace {

double interval_ms(const StepMarks::Mark& from, const StepMarks::Mark& to) {
  return to.event ? from.event->elapsedTime(*to.event)
                  : (to.host_seconds - from.host_seconds) * 1e3;
}

}  // namespace

StepTimes read_times(StepMarks& marks) {
  StepTimes times;
  auto& list = marks.marks;
  if (!list.empty() && list.back().event) list.back().event->synchronize();
  for (size_t i = 1; i < list.size(); ++i) {
    const double interval = interval_ms(list[i - 1], list[i]);
    phase_slot(times.phases, list[i].phase) += interval;
    times.time_ms += interval;
    if (list[i].phase == Phase::kComm && marks.comm_start) {
      times.comm_total_ms = interval_ms(*marks.comm_start, list[i]);
    }
  }
  return times;
}

}  // namespace assay::step
