// `assay diff LEFT RIGHT`: continuity of two runs or two checkpoints.
#pragma once

#include <span>
#include <string>

namespace assay::checkpoints {

// `words` are those after "diff". Prints to standard output and returns the exit code: 0 equal, 6
// different. Throws Error for main to print: ConfigError for a wrong command line, CheckpointError
// for what cannot be read.
int run_diff_command(std::span<const std::string> words);

}  // namespace assay::checkpoints
