#include "harness/interrupt.h"

#include <ctime>

#include "base/text.h"

namespace assay::harness {

InterruptedError::InterruptedError(int signal_number)
    : Error(ExitCode::kCouldNotRun,
            cat("interrupted by signal ", signal_number,
                "; what was finished stands in the report. Fix: run the missing scenarios with "
                "--scenarios into the same --output")),
      signal_number_(signal_number) {}

Interrupt::Interrupt() {
  sigemptyset(&watched_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&watched_, number);
  if (sigprocmask(SIG_BLOCK, &watched_, &former_mask_) != 0) {
    throw InternalError("sigprocmask refused to block SIGINT, SIGTERM and SIGHUP");
  }
}

Interrupt::~Interrupt() {
  if (signal_number_ == 0) sigprocmask(SIG_SETMASK, &former_mask_, nullptr);
}

int Interrupt::poll() {
  if (signal_number_ != 0) return signal_number_;
  const timespec no_wait{0, 0};
  const int number = sigtimedwait(&watched_, nullptr, &no_wait);
  if (number > 0) {
    signal_number_ = number;
    sigprocmask(SIG_SETMASK, &former_mask_, nullptr);
  }
  return signal_number_;
}

void Interrupt::check() {
  if (poll() != 0) throw InterruptedError(signal_number_);
}

}  // namespace assay::harness
