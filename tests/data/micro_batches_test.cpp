#include "data/micro_batches.h"

#include <gtest/gtest.h>

#include "tests/data/armed_faults.h"
#include "tests/data/index_coded.h"

namespace assay::data {
namespace {

std::vector<int64_t> first_ids(const SamplerConfig& config, int num_plans) {
  const IndexCoded dataset(config.dataset_size);
  const Sampler sampler(config);
  MicroBatchPlanner planner(dataset, sampler);
  planner.start({});
  std::vector<int64_t> ids;
  for (int i = 0; i < num_plans; ++i) {
    const MicroBatchPlan plan = planner.next();
    ids.insert(ids.end(), plan.ids.begin(), plan.ids.end());
  }
  return ids;
}

constexpr SamplerConfig kInOrder{.dataset_size = 10, .micro_batch_size = 2, .shuffle = false};

TEST(MicroBatchPlanner, GivesAllRanksAsManyMicroSteps) {
  const IndexCoded dataset(14);
  for (int64_t rank = 0; rank < 3; ++rank) {
    const Sampler sampler({.dataset_size = 14,
                           .micro_batch_size = 2,
                           .grad_accum_steps = 2,
                           .world_size = 3,
                           .rank = rank});
    MicroBatchPlanner planner(dataset, sampler);
    planner.start({});
    EXPECT_EQ(planner.next().num_micro_steps, 2);
    planner.start({.epoch = 0, .samples_in_epoch = 12});
    const MicroBatchPlan last = planner.next();
    EXPECT_EQ(last.window.count, 2);
    EXPECT_EQ(last.num_micro_steps, 1);
    EXPECT_EQ(last.ids.size(), rank == 0 ? 2U : 0U);
    EXPECT_EQ(planner.next().window.epoch, 1);
  }
}

TEST(MicroBatchPlanner, CountsValidTargetsOfTheWholeStep) {
  const IndexCoded dataset(10);  // id % 3 valid targets
  for (int64_t rank = 0; rank < 2; ++rank) {
    const Sampler sampler({.dataset_size = 10,
                           .micro_batch_size = 2,
                           .grad_accum_steps = 2,
                           .world_size = 2,
                           .rank = rank,
                           .shuffle = false});
    MicroBatchPlanner planner(dataset, sampler);
    planner.start({});
    const MicroBatchPlan plan = planner.next();
    EXPECT_EQ(plan.step_valid_targets, 0 + 1 + 2 + 0 + 1 + 2 + 0 + 1);
    EXPECT_EQ(plan.valid_targets, rank == 0 ? 0 + 1 : 2 + 0);
    planner.next();
    EXPECT_EQ(planner.next().step_valid_targets, 2 + 0);
  }
}

TEST(MicroBatchPlanner, SkipsASampleWhenTheDefectIsPlanted) {
  const ArmedFaults armed("defect.skip_sample:4=on");
  EXPECT_EQ(first_ids(kInOrder, 5), (std::vector<int64_t>{0, 1, 2, 4, 4, 5, 6, 7, 8, 9}));
}

TEST(MicroBatchPlanner, RepeatsASampleWhenTheDefectIsPlanted) {
  const ArmedFaults armed("defect.repeat_sample:5=on");
  EXPECT_EQ(first_ids(kInOrder, 5), (std::vector<int64_t>{0, 1, 2, 3, 3, 5, 6, 7, 8, 9}));
}

TEST(MicroBatchPlanner, RepeatsTheFirstSampleAtTheSecondPlace) {
  const ArmedFaults armed("defect.repeat_sample=on");
  EXPECT_EQ(first_ids(kInOrder, 2), (std::vector<int64_t>{0, 0, 2, 3}));
}

TEST(MicroBatchPlanner, KeepsItsOrderWithNothingPlanted) {
  EXPECT_EQ(first_ids(kInOrder, 5), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

}  // namespace
}  // namespace assay::data
