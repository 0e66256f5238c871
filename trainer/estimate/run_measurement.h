// What a measured run says about its steps, for predicting more ranks. Torch-free.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/config/run_config.h"

namespace assay::estimate {

// Medians over the steps after warm-up, of one rank without communication.
struct MeasuredStep {
  double forward_ms = 0;    // of one micro-step, with data wait and copies
  double backward_ms = 0;   // of one micro-step
  double update_ms = 0;     // the rest of the step
  double deviation_ms = 0;  // 1.4826 x median absolute deviation of the whole step
  int64_t steps = 0;        // counted
  int64_t peak_allocated_bytes = 0;
};

struct MeasuredRun {
  config::RunConfig config;
  MeasuredStep step;
};

// Throws CheckpointError or ConfigError naming the file that is missing or broken, and ConfigError
// for a run of fewer than 10 steps.
MeasuredRun read_measured_run(const std::string& run_dir);

}  // namespace assay::estimate
