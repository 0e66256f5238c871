// Signals by name, and signals to this process as something to read.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace assay::launch {

std::string signal_text(int number);            // "SIGTERM"; "signal 99" if it has no name
int signal_number_of(const std::string& name);  // of "SIGTERM" or "TERM"; 0 if there is none

// From construction to destruction these signals, and SIGCHLD, are queued instead of delivered.
// Main thread only; before other threads start.
class SignalInbox {
 public:
  explicit SignalInbox(const std::vector<int>& numbers);  // throws LaunchError
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;
  int fd() const { return fd_; }  // readable when one has come
  std::optional<int> next();      // never blocks; SIGCHLD is left out

 private:
  int fd_ = -1;
  sigset_t before_{};
};

}  // namespace assay::launch
