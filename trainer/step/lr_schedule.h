// Learning rate as a pure function of the number of applied updates, as the schedules of the
// Hugging Face Trainer and of torch.optim define it. Torch-free.
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
// step, multistep: multiplied by gamma after every step_size updates, or at each milestone; counted
// from the first update, the warm-up included.
// wsd (Hu et al. 2024, sec. 4.1): warm-up, constant, then half a cosine to min_lr_ratio over the
// last decay_steps before total_steps, as Hugging Face's get_wsd_schedule (whose warm-up starts from
// min_lr_ratio instead of 0).
double learning_rate_at(const LrSchedule& schedule, int64_t updates);

// True if the schedule falls towards total_steps, so that going past it has no meaning. False for
// step and multistep, which know no end.
bool is_decaying(const config::ScheduleConfig& shape);

}  // namespace assay::step
