#include "trainer/run/stop_signal.h"

#include <atomic>
#include <csignal>
#include <string_view>

#include <unistd.h>

#include "base/text.h"

namespace assay::run {
namespace {

// The one piece of process-wide state that a signal handler needs.
std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void request_stop(int signal_number) {
  int none = 0;
  if (stop_signal.compare_exchange_strong(none, signal_number)) return;
  constexpr std::string_view kSecond = "\nassay: second signal, ending at once\n";
  // Nothing can be done about a failed write here.
  if (write(STDERR_FILENO, kSecond.data(), kSecond.size()) < 0) _exit(128 + signal_number);
  _exit(128 + signal_number);
}

}  // namespace

void install_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
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
