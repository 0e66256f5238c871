#include "trainer/run/global_batch.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::run {
namespace {

using testing::HasSubstr;

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(GlobalBatch, AdaptsAccumulationFirst) {
  EXPECT_EQ(split_for_world({4, 2, 4}, 2), (BatchSplit{4, 4, 2}));
  EXPECT_EQ(split_for_world({4, 2, 4}, 8), (BatchSplit{4, 1, 8}));
  EXPECT_EQ(split_for_world({4, 2, 4}, 4), (BatchSplit{4, 2, 4}));
}

TEST(GlobalBatch, ThenTakesTheLargestSmallerMicroBatch) {
  EXPECT_EQ(split_for_world({4, 2, 4}, 16), (BatchSplit{2, 1, 16}));
  EXPECT_EQ(split_for_world({6, 1, 3}, 2), (BatchSplit{3, 3, 2}));
}

TEST(GlobalBatch, StaysTheSameForEverySplit) {
  for (int64_t world = 1; world <= 48; ++world) {
    if (48 % world != 0) continue;
    const BatchSplit split = split_for_world({8, 3, 2}, world);
    EXPECT_EQ(global_batch_size(split), 48) << world;
    EXPECT_LE(split.batch_size, 8) << world;
  }
}

TEST(GlobalBatch, RefusesRanksThatDoNotDivideItWithBothNumbers) {
  const std::string refusal = refusal_of([] { split_for_world({4, 2, 4}, 3); });
  EXPECT_THAT(refusal,
              HasSubstr("32 (batch_size 4 x gradient_accumulation_steps 2 x world_size 4)"));
  EXPECT_THAT(refusal, HasSubstr("3 ranks"));
}

TEST(GlobalBatch, AResumeMayChangeTheSplitButNotTheProduct) {
  const BatchSplit before{4, 2, 1};
  EXPECT_EQ(resumed_split(before, {8, 1, 1}, {true, true, false}), (BatchSplit{8, 1, 1}));
  EXPECT_EQ(resumed_split(before, {2, 2, 1}, {true, false, false}), (BatchSplit{2, 4, 1}));
  EXPECT_EQ(resumed_split(before, {4, 8, 1}, {false, true, false}), (BatchSplit{1, 8, 1}));
  const std::string refusal = refusal_of([&] {
    resumed_split(before, {4, 3, 1}, {true, true, false});
  });
  EXPECT_THAT(refusal, HasSubstr("8 (batch_size 4"));
  EXPECT_THAT(refusal, HasSubstr("12 (batch_size 4"));
  EXPECT_EQ(resumed_split(before, {4, 3, 1}, {true, true, true}), (BatchSplit{4, 3, 1}));
}

TEST(GlobalBatch, DoesNotOverflow) {
  const int64_t large = std::numeric_limits<int64_t>::max() / 2;
  EXPECT_EQ(global_batch_size({large, 3, 5}), std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace assay::run
