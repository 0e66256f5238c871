#include "trainer/step/lr_schedule.h"

#include <cmath>
#include <numbers>
#include <vector>

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

// Closed forms against torch's running products: one rounding a fall.
void expect_rates(const LrSchedule& schedule, int64_t first, const std::vector<double>& expected) {
  int64_t update = first;
  for (const double rate : expected) {
    EXPECT_NEAR(learning_rate_at(schedule, update), rate, 8 * std::ldexp(rate, -52)) << update;
    ++update;
  }
}

LrSchedule falling(const char* type) {
  LrSchedule schedule = schedule_of(type, 0);
  schedule.learning_rate = 0.1;
  schedule.total_steps = 0;
  return schedule;
}

// torch.optim.lr_scheduler.StepLR(step_size=3, gamma=0.3) of torch 2.11.0
TEST(LrSchedule, FallsInStepsAsTorch) {
  LrSchedule schedule = falling("step");
  schedule.shape.step_size = 3;
  schedule.shape.gamma = 0.3;
  expect_rates(
      schedule, 0,
      {0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.eb851eb851eb8p-6,
       0x1.eb851eb851eb8p-6, 0x1.eb851eb851eb8p-6, 0x1.26e978d4fdf3bp-7, 0x1.26e978d4fdf3bp-7,
       0x1.26e978d4fdf3bp-7, 0x1.61e4f765fd8adp-9, 0x1.61e4f765fd8adp-9, 0x1.61e4f765fd8adp-9,
       0x1.a8ac5c13fd0cfp-11});
}

// torch.optim.lr_scheduler.MultiStepLR(milestones=[2, 5, 6], gamma=0.1) of torch 2.11.0
TEST(LrSchedule, FallsAtMilestonesAsTorch) {
  LrSchedule schedule = falling("multistep");
  schedule.shape.milestones = "2, 5,6";
  expect_rates(schedule, 0,
               {0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.47ae147ae147cp-7,
                0x1.47ae147ae147cp-7, 0x1.47ae147ae147cp-7, 0x1.0624dd2f1a9fdp-10,
                0x1.a36e2eb1c432fp-14, 0x1.a36e2eb1c432fp-14, 0x1.a36e2eb1c432fp-14});
  schedule.shape.warmup_steps = 2;
  EXPECT_EQ(learning_rate_at(schedule, 1), 0.05);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 2), 0.01);
}

// transformers' get_wsd_schedule(num_warmup_steps=4, num_decay_steps=6, num_training_steps=20,
// min_lr_ratio=0.1), version 4.57.1, from the end of the warm-up on
TEST(LrSchedule, WarmsUpStaysAndDecaysAsHuggingFace) {
  LrSchedule schedule = falling("wsd");
  schedule.shape.warmup_steps = 4;
  schedule.shape.decay_steps = 6;
  schedule.shape.min_lr_ratio = 0.1;
  schedule.total_steps = 20;
  EXPECT_EQ(learning_rate_at(schedule, 0), 0.0);
  EXPECT_EQ(learning_rate_at(schedule, 2), 0.05);
  for (int64_t update = 4; update <= 14; ++update) {
    EXPECT_EQ(learning_rate_at(schedule, update), 0.1) << update;
  }
  expect_rates(
      schedule, 15,
      {0x1.80e7e2aaf25d8p-4, 0x1.3d70a3d70a3d8p-4, 0x1.c28f5c28f5c2ap-5, 0x1.0a3d70a3d70a6p-5,
       0x1.069de5f80d947p-6, 0x1.47ae147ae147cp-7, 0x1.47ae147ae147cp-7, 0x1.47ae147ae147cp-7});
}

TEST(LrSchedule, KnowsWhichShapesEnd) {
  EXPECT_TRUE(is_decaying(schedule_of("wsd", 0).shape));
  EXPECT_FALSE(is_decaying(schedule_of("step", 0).shape));
  EXPECT_FALSE(is_decaying(schedule_of("multistep", 0).shape));
  EXPECT_TRUE(is_decaying(schedule_of("linear", 0).shape));
  EXPECT_TRUE(is_decaying(schedule_of("cosine", 0).shape));
  EXPECT_FALSE(is_decaying(schedule_of("constant_with_warmup", 0).shape));
}

}  // namespace
}  // namespace assay::step
