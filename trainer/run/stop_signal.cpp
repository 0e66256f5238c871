#include "trainer/run/stop_signal.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <string_view>

#include <unistd.h>

#include "base/text.h"

namespace assay::run {
namespace {

// Process-wide state that a signal handler needs.
std::atomic<int> stop_signal{0};
std::atomic<bool> is_first_from_parent{false};
std::atomic<int64_t> first_at_ms{0};
std::atomic<bool> is_echo_over{false};
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<int64_t>::is_always_lock_free);

int64_t now_ms() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000} + now.tv_nsec / 1000000;
}

// A manager that signals every process of a job reaches a rank twice: itself, and through the
// launcher, which passes on what it got. The two are one request.
bool is_echo(int signal_number, bool is_from_parent) {
  constexpr int64_t kEchoMs = 2000;
  return signal_number == stop_signal.load() && is_from_parent != is_first_from_parent.load() &&
         now_ms() - first_at_ms.load() < kEchoMs && !is_echo_over.exchange(true);
}

extern "C" void request_stop(int signal_number, siginfo_t* info, void* /*context*/) {
  const bool is_from_parent = info->si_code <= 0 && info->si_pid == getppid();
  int none = 0;
  if (stop_signal.compare_exchange_strong(none, signal_number)) {
    is_first_from_parent.store(is_from_parent);
    first_at_ms.store(now_ms());
    return;
  }
  if (is_echo(signal_number, is_from_parent)) return;
  constexpr std::string_view kSecond = "\nassay: second signal, ending at once\n";
  // Nothing can be done about a failed write here.
  if (write(STDERR_FILENO, kSecond.data(), kSecond.size()) < 0) _exit(128 + signal_number);
  _exit(128 + signal_number);
}

}  // namespace

void install_stop_signals() {
  struct sigaction action = {};
  action.sa_sigaction = request_stop;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (const int other : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&action.sa_mask, other);
  for (const int signal_number : {SIGTERM, SIGINT, SIGUSR1}) {
    sigaction(signal_number, &action, nullptr);
  }
  // A write beyond RLIMIT_FSIZE must fail with EFBIG, not end the process.
  std::signal(SIGXFSZ, SIG_IGN);
}

int requested_stop_signal() { return stop_signal.load(std::memory_order_relaxed); }

std::string signal_name(int signal_number) {
  switch (signal_number) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return cat("signal ", signal_number);
  }
}

}  // namespace assay::run
