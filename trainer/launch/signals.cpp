#include "trainer/launch/signals.h"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <sys/signalfd.h>

#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

namespace assay::launch {

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? cat("signal ", number) : cat("SIG", name);
}

int signal_number_of(const std::string& name) {
  const std::string_view bare =
      name.starts_with("SIG") ? std::string_view(name).substr(3) : std::string_view(name);
  for (int number = 1; number < NSIG; ++number) {
    const char* abbreviation = sigabbrev_np(number);
    if (abbreviation != nullptr && bare == abbreviation) return number;
  }
  return 0;
}

SignalInbox::SignalInbox(const std::vector<int>& numbers) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int number : numbers) sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ >= 0) return;
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  throw LaunchError(cat("cannot watch signals: ", std::strerror(error)));
}

SignalInbox::~SignalInbox() {
  close(fd_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalInbox::next() {
  signalfd_siginfo info{};
  while (read(fd_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number != SIGCHLD) return number;
  }
  return std::nullopt;
}

}  // namespace assay::launch
