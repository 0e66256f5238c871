// `assay train` and `assay estimate`: become the trainer program, which links LibTorch; this one
// never does.
#pragma once

#include <span>
#include <string>

namespace assay::cli {

// Replaces this process by `assay-train train <words>`, so that signals, process id and exit code
// are the trainer's. Returns never; throws CouldNotRunError if the trainer cannot be started.
int run_train_command(std::span<const std::string> words);
// The same with `assay-train estimate <words>`.
int run_estimate_command(std::span<const std::string> words);

}  // namespace assay::cli
