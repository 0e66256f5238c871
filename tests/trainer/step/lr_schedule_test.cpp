#include "trainer/step/lr_schedule.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace assay::step {
namespace {

LrSchedule schedule_of(const char* type, int64_t warmup_steps, double min_lr_ratio = 0.0) {
  LrSchedule schedule;
  schedule.shape.type = type;
  schedule.shape.warmup_steps = warmup_steps;
  schedule.shape.min_lr_ratio = min_lr_ratio;
  schedule.learning_rate = 0.5;
  schedule.total_steps = 110;
  return schedule;
}

TEST(LrSchedule, ConstantIgnoresWarmup) {
  EXPECT_EQ(learning_rate_at(schedule_of("constant", 10), 0), 0.5);
  EXPECT_EQ(learning_rate_at(schedule_of("constant", 10), 100000), 0.5);
}

TEST(LrSchedule, WarmsUpLinearlyFromZero) {
  for (const char* type : {"constant_with_warmup", "linear", "cosine"}) {
    const LrSchedule schedule = schedule_of(type, 10);
    EXPECT_EQ(learning_rate_at(schedule, 0), 0.0) << type;
    EXPECT_EQ(learning_rate_at(schedule, 5), 0.25) << type;
    EXPECT_EQ(learning_rate_at(schedule, 10), 0.5) << type;
  }
}

TEST(LrSchedule, FallsLinearlyToZeroAtTheHorizon) {
  const LrSchedule schedule = schedule_of("linear", 10);
  EXPECT_EQ(learning_rate_at(schedule, 60), 0.25);
  EXPECT_EQ(learning_rate_at(schedule, 110), 0.0);
  EXPECT_EQ(learning_rate_at(schedule, 1000), 0.0);
}

TEST(LrSchedule, FollowsHalfACosine) {
  const LrSchedule schedule = schedule_of("cosine", 10);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 35), 0.25 * (1 + std::cos(std::numbers::pi * 0.25)));
  EXPECT_NEAR(learning_rate_at(schedule, 110), 0.0, 1e-16);  // cos(pi) rounds to -1
}

TEST(LrSchedule, EndsAtTheMinimumRatio) {
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule_of("linear", 0, 0.1), 110), 0.05);
  EXPECT_NEAR(learning_rate_at(schedule_of("cosine", 0, 0.1), 110), 0.05, 1e-16);
}

TEST(LrSchedule, StaysWithinItsBoundsAndNeverJumps) {
  for (const char* type : {"constant_with_warmup", "linear", "cosine"}) {
    const LrSchedule schedule = schedule_of(type, 10, 0.1);
    double previous = learning_rate_at(schedule, 0);
    for (int64_t update = 1; update <= 120; ++update) {
      const double rate = learning_rate_at(schedule, update);
      EXPECT_GE(rate, 0.0);
      EXPECT_LE(rate, 0.5);
      // The steepest part is the warm-up: a tenth of the peak a step.
      EXPECT_LE(std::abs(rate - previous), 0.5 / 10 + 1e-15) << type << " at " << update;
      previous = rate;
    }
  }
}

TEST(LrSchedule, KnowsWhichShapesEnd) {
  EXPECT_TRUE(is_decaying(schedule_of("linear", 0).shape));
  EXPECT_TRUE(is_decaying(schedule_of("cosine", 0).shape));
  EXPECT_FALSE(is_decaying(schedule_of("constant_with_warmup", 0).shape));
}

}  // namespace
}  // namespace assay::step
