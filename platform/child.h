// Runs a short program and keeps what it said.
#pragma once

#include <string>
#include <vector>

namespace assay::platform {

struct ChildResult {
  int exit_code = 0;          // 128+N after signal N
  std::string start_error;    // why it could not be started; the other fields then mean nothing
  bool is_timed_out = false;  // it was killed
  std::string output;         // stdout and stderr together, cut at 64 KiB
};

// words[0] is a path. Standard input is empty. Blocks until the program ends or is killed.
ChildResult run_and_capture(const std::vector<std::string>& words, double timeout_seconds);

}  // namespace assay::platform
