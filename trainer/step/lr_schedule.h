// Learning rate as a pure function of the number of applied updates, as the Hugging Face Trainer's
// schedules define it. Torch-free.
#pragma once

#include <cstdint>

#include "trainer/config/run_config.h"

namespace assay::step {

struct LrSchedule {
  config::ScheduleConfig shape;
  double learning_rate = 0;  // peak
  int64_t total_steps = 0;   // horizon, fixed at the run's first start; 0: none
};

// Rate for the update after `updates` applied ones (0 for the first). Warm-up rises linearly from 0
// over warmup_steps; then constant, linear to min_lr_ratio, or half a cosine to it
// (Loshchilov & Hutter 2017, eq. 5, without restarts).
double learning_rate_at(const LrSchedule& schedule, int64_t updates);

// True if the schedule falls towards its end, so that going past total_steps has no meaning.
bool is_decaying(const config::ScheduleConfig& shape);

}  // namespace assay::step
