// The loop of a run: steps, records, evaluations, saves, until the target or a signal.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/log.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "trainer/config/run_config.h"
#include "trainer/step/ranks.h"
#include "trainer/step/train_state.h"

namespace assay::trainer {

// What the loop works with; borrowed for its duration.
struct LoopContext {
  const config::RunConfig& config;  // output_dir is the run folder, locked by rank 0
  const data::OpenedData& data;
  const data::Sampler& sampler;
  data::DataLoader& loader;
  c10::Device device;
  int64_t target_steps = 0;
  std::map<std::string, std::string> versions;
  step::Ranks ranks;
  Logger& log;
};

struct LoopResult {
  int stop_signal = 0;         // 0: the target was reached
  std::string state_digest;    // of the last save
  double startup_seconds = 0;  // process start to the end of the first step; 0: no step
};

// Advances `state` to the target. The last step is always saved. Ranks take every decision (stop,
// save, evaluate) at the same step; rank 0 alone writes records and checkpoints. Throws
// DivergedError on the first non-finite step (its line is written, its update not applied, nothing
// is saved after it) and when the ranks' states differ, and CheckpointError if a save fails.
LoopResult run_training(const LoopContext& context, step::TrainState& state);

}  // namespace assay::trainer
