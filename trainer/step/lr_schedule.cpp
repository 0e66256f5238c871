#include "trainer/step/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "trainer/config/config_io.h"

namespace assay::step {

namespace {

// How often the rate has fallen before the update.
int64_t falls_before(const config::ScheduleConfig& shape, int64_t updates) {
  if (shape.type == "step") return updates / shape.step_size.value();
  const std::vector<int64_t> milestones = config::milestones_of(shape).value();
  return std::upper_bound(milestones.begin(), milestones.end(), updates) - milestones.begin();
}

// Where the decay stands before the update: 0 until it begins, 1 at the horizon.
double decay_progress(const LrSchedule& schedule, int64_t updates) {
  const config::ScheduleConfig& shape = schedule.shape;
  const int64_t begin =
      shape.type == "wsd" ? schedule.total_steps - shape.decay_steps.value() : shape.warmup_steps;
  const int64_t length = std::max<int64_t>(1, schedule.total_steps - begin);
  return std::clamp(static_cast<double>(updates - begin) / static_cast<double>(length), 0.0, 1.0);
}

}  // namespace

bool is_decaying(const config::ScheduleConfig& shape) {
  return shape.type == "linear" || shape.type == "cosine" || shape.type == "wsd";
}

double learning_rate_at(const LrSchedule& schedule, int64_t updates) {
  const config::ScheduleConfig& shape = schedule.shape;
  const double peak = schedule.learning_rate;
  const bool has_warmup = shape.type != "constant";
  if (has_warmup && updates < shape.warmup_steps) {
    return peak * static_cast<double>(updates) / static_cast<double>(shape.warmup_steps);
  }
  if (shape.type == "step" || shape.type == "multistep") {
    return peak * std::pow(shape.gamma, static_cast<double>(falls_before(shape, updates)));
  }
  if (!is_decaying(shape)) {
    if (shape.type != "constant" && shape.type != "constant_with_warmup") {
      throw InternalError(cat("unknown schedule ", quoted(shape.type), " passed validation"));
    }
    return peak;
  }
  const double progress = decay_progress(schedule, updates);
  const double fraction =
      shape.type == "linear" ? 1.0 - progress : 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return peak * (shape.min_lr_ratio + (1.0 - shape.min_lr_ratio) * fraction);
}

}  // namespace assay::step
