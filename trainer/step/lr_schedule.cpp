#include "trainer/step/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/text.h"

namespace assay::step {

bool is_decaying(const config::ScheduleConfig& shape) {
  return shape.type == "linear" || shape.type == "cosine";
}

double learning_rate_at(const LrSchedule& schedule, int64_t updates) {
  const config::ScheduleConfig& shape = schedule.shape;
  const double peak = schedule.learning_rate;
  const bool has_warmup = shape.type != "constant";
  if (has_warmup && updates < shape.warmup_steps) {
    return peak * static_cast<double>(updates) / static_cast<double>(shape.warmup_steps);
  }
  if (!is_decaying(shape)) {
    if (shape.type != "constant" && shape.type != "constant_with_warmup") {
      throw InternalError(cat("unknown schedule ", quoted(shape.type), " passed validation"));
    }
    return peak;
  }
  const int64_t decay_steps = std::max<int64_t>(1, schedule.total_steps - shape.warmup_steps);
  const double progress = std::clamp(
      static_cast<double>(updates - shape.warmup_steps) / static_cast<double>(decay_steps), 0.0,
      1.0);
  const double fraction =
      shape.type == "linear" ? 1.0 - progress : 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return peak * (shape.min_lr_ratio + (1.0 - shape.min_lr_ratio) * fraction);
}

}  // namespace assay::step
