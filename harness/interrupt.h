// Ctrl-C and SIGTERM for the harness: noticed between two polls, so that children are ended and the
// folder is left consistent.
#pragma once

#include <csignal>

#include "base/error.h"

namespace assay::harness {

// Thrown where work stops because of a signal; `signal_number` leads to exit code 128 + N.
class InterruptedError : public Error {
 public:
  explicit InterruptedError(int signal_number);
  int signal_number() const { return signal_number_; }

 private:
  int signal_number_;
};

// Holds SIGINT, SIGTERM and SIGHUP back while it lives. After the first one was noticed the former
// mask is restored, so that a second signal ends the program at once. Main thread only.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The signal that came, 0 for none. Does not block.
  int poll();
  // Throws InterruptedError if a signal came.
  void check();

 private:
  sigset_t watched_;
  sigset_t former_mask_;
  int signal_number_ = 0;
};

}  // namespace assay::harness
