// `assay estimate`: what a run will need, before it starts.
#pragma once

#include <span>
#include <string>

namespace assay::estimate {

struct CommandOutput {
  std::string text;  // for standard output
  int code = 0;      // 0: fits on the device that is here; 6: does not
};

// `words` are those after "estimate". Changes nothing on disk. Throws ConfigError for words that
// are wrong.
CommandOutput run_estimate_command(std::span<const std::string> words);

}  // namespace assay::estimate
