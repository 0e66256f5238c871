// `assay checkpoint list|inspect|verify|digest|export PATH`: needs neither GPU nor LibTorch.
#pragma once

#include <span>
#include <string>

namespace assay::checkpoints {

// `words` are those after "checkpoint". Prints to standard output and returns the exit code: 0, or
// 4 from verify if anything is damaged. Throws Error for main to print: ConfigError for a wrong
// command line, CheckpointError for what cannot be read.
int run_checkpoint_command(std::span<const std::string> words);

}  // namespace assay::checkpoints
