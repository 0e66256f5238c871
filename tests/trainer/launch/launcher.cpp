#include "tests/trainer/launch/launcher.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"

namespace assay::launch {

support::ProgramEnd run_launcher(const LauncherRequest& request) {
  support::ProgramRequest program;
  program.command = {ASSAY_PROGRAM, "launch"};
  program.command.insert(program.command.end(), request.options.begin(), request.options.end());
  program.command.insert(program.command.end(), {"--", "train"});
  program.command.insert(program.command.end(), request.actions.begin(), request.actions.end());
  program.environment = request.environment;
  program.environment["ASSAY_TRAIN"] = LAUNCH_PROBE;
  program.watch = request.watch;
  program.limit_seconds = request.limit_seconds;
  return support::run_program(program);
}

std::vector<support::ProgramEnd> run_launchers(const std::vector<LauncherRequest>& requests) {
  std::vector<support::ProgramEnd> ends(requests.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < requests.size(); ++i) {
    threads.emplace_back([&, i] { ends[i] = run_launcher(requests[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

std::function<int()> signal_when_there(const std::vector<std::string>& files, int signal) {
  return [files, signal, is_sent = false]() mutable {
    const bool are_there = std::all_of(files.begin(), files.end(), path_exists);
    if (!are_there || is_sent) return 0;
    is_sent = true;
    return signal;
  };
}

std::vector<int64_t> survivors(const std::string& prefix, int64_t num_ranks) {
  const double deadline = monotonic_seconds() + 10;
  while (true) {
    std::vector<int64_t> running;
    for (int64_t rank = 0; rank < num_ranks; ++rank) {
      const auto pid = parse_int64(read_file(cat(prefix, ".", rank, ".0")));
      if (pid && kill(static_cast<pid_t>(*pid), 0) == 0) running.push_back(*pid);
    }
    if (running.empty() || monotonic_seconds() > deadline) return running;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace assay::launch
