// `assay launch [torchrun options] [--] train ...`: starts and supervises the ranks of a run.
#pragma once

#include <span>
#include <string>

namespace assay::launch {

// `words` after "launch". Returns the exit code of the job: that of the first rank that failed,
// 128 + N if signal N killed it or asked the job to stop. Throws ConfigError, LaunchError and
// CouldNotRunError.
int run_launch_command(std::span<const std::string> words);

}  // namespace assay::launch
