// The comparer against run folders with one planted difference each.
#include "harness/continuity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "harness/run_folder.h"
#include "tests/harness/fabricated_run.h"

namespace assay::harness {
namespace {

using ::testing::HasSubstr;

class Continuities : public ::testing::Test {
 protected:
  void SetUp() override { write_run(control_, FabricatedRun{}); }

  ContinuityVerdict judge(const FabricatedRun& run, double tolerance = 1e-5) {
    write_run(resumed_, run);
    return judge_continuity(control_, resumed_, tolerance);
  }

  TemporaryFolder folder_;
  std::string control_ = join_path(folder_.path(), "control");
  std::string resumed_ = join_path(folder_.path(), "resumed");
};

TEST_F(Continuities, EqualRunsAreBitEqual) {
  const ContinuityVerdict verdict = judge(FabricatedRun{});
  EXPECT_EQ(verdict.continuity, Continuity::kBitEqual) << verdict.first_difference;
  EXPECT_EQ(verdict.compared_steps, 10);
  EXPECT_EQ(verdict.compared_checkpoints, 2);
  EXPECT_EQ(verdict.compared_tensors, 4);
}

TEST_F(Continuities, ATinyWeightDifferenceIsWithinToleranceNotEqual) {
  FabricatedRun run;
  run.weight_change = 2.4e-7f;
  run.state_digest = "other";
  const ContinuityVerdict verdict = judge(run);
  EXPECT_EQ(verdict.continuity, Continuity::kWithinTolerance) << verdict.first_difference;
  EXPECT_GT(verdict.greatest_relative, 0);
  EXPECT_LT(verdict.greatest_relative, 1e-5);
  EXPECT_THAT(verdict.first_difference, HasSubstr("fc.weight"));
}

TEST_F(Continuities, ALargeWeightDifferenceIsBroken) {
  FabricatedRun run;
  run.weight_change = 0.5f;
  run.state_digest = "other";
  EXPECT_EQ(judge(run).continuity, Continuity::kBroken);
}

TEST_F(Continuities, AStateDigestAloneThatDiffersIsBroken) {
  FabricatedRun run;
  run.state_digest = "other";
  const ContinuityVerdict verdict = judge(run);
  EXPECT_EQ(verdict.continuity, Continuity::kBroken);
  EXPECT_THAT(verdict.first_difference, HasSubstr("state_digest: control same, resumed other"));
}

TEST_F(Continuities, ALostStepIsBroken) {
  FabricatedRun run;
  run.missing_step = 7;
  const ContinuityVerdict verdict = judge(run);
  EXPECT_EQ(verdict.continuity, Continuity::kBroken);
  EXPECT_THAT(verdict.first_difference, HasSubstr("control has step 7, resumed step 8"));
}

TEST_F(Continuities, ADoubleLineIsBroken) {
  FabricatedRun run;
  run.double_step = 4;
  const ContinuityVerdict verdict = judge(run);
  EXPECT_EQ(verdict.continuity, Continuity::kBroken);
  EXPECT_THAT(verdict.first_difference, HasSubstr("control has step 5, resumed step 4"));
}

TEST_F(Continuities, OtherSamplesAreBrokenAtTheirStep) {
  FabricatedRun run;
  run.swapped_ids_step = 6;
  const ContinuityVerdict verdict = judge(run);
  EXPECT_EQ(verdict.continuity, Continuity::kBroken);
  EXPECT_THAT(verdict.first_difference, HasSubstr("step 6 place 0: sample 0 and 1"));
}

TEST_F(Continuities, ALearningRateThatDiffersIsBrokenHoweverLittle) {
  FabricatedRun run;
  run.other_rate_step = 6;
  const ContinuityVerdict verdict = judge(run, /*tolerance=*/1);
  EXPECT_EQ(verdict.continuity, Continuity::kBroken);
  EXPECT_THAT(verdict.first_difference, HasSubstr("learning_rate"));
}

TEST_F(Continuities, AnotherGeneratorStateIsBroken) {
  FabricatedRun run;
  run.rng_change = 1;
  run.state_digest = "other";
  const ContinuityVerdict verdict = judge(run, /*tolerance=*/1);
  EXPECT_EQ(verdict.continuity, Continuity::kBroken);
  EXPECT_THAT(verdict.first_difference, HasSubstr("rng"));
}

TEST_F(Continuities, ALossWithinToleranceIsNotBroken) {
  FabricatedRun run;
  run.other_loss_step = 8;
  run.other_loss = 1e-9;
  run.state_digest = "other";
  EXPECT_EQ(judge(run).continuity, Continuity::kWithinTolerance);
  run.other_loss = 0.1;
  write_run(resumed_ + "2", run);
  EXPECT_EQ(judge_continuity(control_, resumed_ + "2", 1e-5).continuity, Continuity::kBroken);
}

TEST_F(Continuities, AMissingResultIsAnErrorNotAVerdict) {
  write_run(resumed_, FabricatedRun{});
  remove_file(join_path(resumed_, "result.json"));
  EXPECT_THROW(judge_continuity(control_, resumed_, 0), DataError);
}

TEST_F(Continuities, WeightsThatWereDroppedLeaveComparableManifests) {
  write_run(resumed_, FabricatedRun{});
  EXPECT_GT(drop_weights(control_), 0u);
  EXPECT_GT(drop_weights(resumed_), 0u);
  EXPECT_EQ(list_directory(join_path(control_, "checkpoint-5")),
            std::vector<std::string>{"manifest.json"});
  EXPECT_TRUE(path_exists(join_path(control_, "metrics.jsonl")));
  EXPECT_EQ(judge_continuity(control_, resumed_, 0).continuity, Continuity::kBitEqual);
}

}  // namespace
}  // namespace assay::harness
