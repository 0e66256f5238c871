// Runs `assay launch` with the probe as its program.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace assay::launch {

struct LauncherRequest {
  std::vector<std::string> options;  // of launch
  std::vector<std::string> actions;  // of the probe
  std::map<std::string, std::string> environment = {};
  std::function<int()> watch = {};  // see support::ProgramRequest
  double limit_seconds = 60;
};

support::ProgramEnd run_launcher(const LauncherRequest& request);

// All at the same time; by index.
std::vector<support::ProgramEnd> run_launchers(const std::vector<LauncherRequest>& requests);

// A watch that sends `signal` once all files are there.
std::function<int()> signal_when_there(const std::vector<std::string>& files, int signal);

// Ids of the processes whose id stands in a file "<prefix>.<rank>.0" and that still run. Waits for
// them to be gone for up to 10 s, which is what the product promises.
std::vector<int64_t> survivors(const std::string& prefix, int64_t num_ranks);

}  // namespace assay::launch
