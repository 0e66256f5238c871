// `assay train`: one rank of a training run, from its words to its exit code.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "trainer/launch/rank_env.h"

namespace assay::trainer {

// Runs or resumes; returns the exit code of contract.md for ends that are no errors (0, 128 +
// signal). Whatever goes wrong is thrown, after result.json has been written where a run folder
// exists. `command` is the whole command line as typed, for the record.
int run_train_command(std::span<const std::string> words, const std::vector<std::string>& command,
                      const launch::RankEnv& rank_env, Logger& log);

// LibTorch, CUDA, cuDNN and our own version; for the record and --version.
std::string trainer_version_text();

}  // namespace assay::trainer
