#include "trainer/estimate/scaling_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"

namespace assay::estimate {
namespace {

using testing::HasSubstr;

constexpr Card kSimple = {"simple", 0, 100, 10, /*tb_per_s=*/1, /*link_gb_per_s=*/1};

// Forward 1 ms, backward 2 ms in two halves with a gradient after each, update 1 ms.
StepTrace two_gradients() {
  StepTrace trace;
  trace.work = {{"f", Stage::kForward, Arithmetic::kSingle, 0, 1e9},
                {"b", Stage::kBackward, Arithmetic::kSingle, 0, 1e9},
                {"b", Stage::kBackward, Arithmetic::kSingle, 0, 1e9},
                {"u", Stage::kUpdate, Arithmetic::kSingle, 0, 1e9}};
  trace.ready = {{"b", 4'000'000, 1'000'000, 2}, {"a", 4'000'000, 1'000'000, 3}};
  trace.state = {0, 800, 1600, 0, 0, 0, 0};
  trace.steady_peak.bytes = 10000;
  trace.samples = 1;
  return trace;
}

double even_share(int64_t ranks) { return 1.0 / static_cast<double>(ranks); }

Scaling plan(const StepTrace& trace, const config::RunConfig& config,
             const EstimateOptions& options, const MeasuredRun* measured = nullptr) {
  return plan_scaling(trace, config, options, kSimple, measured, even_share);
}

EstimateOptions options_with(std::vector<int64_t> worlds) {
  EstimateOptions options;
  options.worlds = std::move(worlds);
  options.latency_us = 0;
  return options;
}

TEST(ScalingPlan, TakesTheStepFromTheCardAndTheBucketsFromTheTrace) {
  config::RunConfig config;
  config.ddp.first_bucket_mb = 1;
  config.ddp.bucket_mb = 1;
  const Scaling scaling = plan(two_gradients(), config, options_with({1, 2}));
  EXPECT_DOUBLE_EQ(scaling.step.backward_ms, 2);
  ASSERT_EQ(scaling.step.buckets.size(), 2u);
  EXPECT_DOUBLE_EQ(scaling.step.buckets[0].ready_ms, 1);
  ASSERT_EQ(scaling.rows.size(), 2u);
  EXPECT_DOUBLE_EQ(scaling.rows[0].prediction.step_ms, 4);
  // From 1 ms on, 4 ms each: done at 9, backward at 2.
  EXPECT_DOUBLE_EQ(scaling.rows[1].prediction.exposed_comm_ms, 7);
  EXPECT_THAT(scaling.step_source, HasSubstr("simple"));
}

TEST(ScalingPlan, ScalesTheStepToAMeasuredTime) {
  EstimateOptions options = options_with({1});
  options.step_ms = 40;
  const Scaling scaling = plan(two_gradients(), {}, options);
  EXPECT_DOUBLE_EQ(scaling.rows[0].prediction.step_ms, 40);
  EXPECT_DOUBLE_EQ(scaling.step.backward_ms, 20);
}

TEST(ScalingPlan, HalvesTheBytesThatTravelInBfloat) {
  config::RunConfig config;
  config.ddp.reduce_dtype = "bf16";
  const Scaling scaling = plan(two_gradients(), config, options_with({2}));
  EXPECT_DOUBLE_EQ(scaling.step.buckets.front().bytes, 2e6);
  EXPECT_EQ(scaling.rows[0].peak_bytes, 10000 + 400);
}

TEST(ScalingPlan, SharesAShardedOptimizerOut) {
  config::RunConfig config;
  config.ddp.shard_optimizer = true;
  const Scaling scaling = plan(two_gradients(), config, options_with({1, 4}));
  EXPECT_EQ(scaling.rows[0].peak_bytes, 10000);
  EXPECT_EQ(scaling.rows[1].peak_bytes, 10000 - 1200);
}

TEST(ScalingPlan, CountsTheLargestPartOfAShardedOptimizer) {
  config::RunConfig config;
  config.ddp.shard_optimizer = true;
  const Scaling scaling = plan_scaling(two_gradients(), config, options_with({4}), kSimple, nullptr,
                                       [](int64_t) { return 0.75; });
  EXPECT_EQ(scaling.rows[0].peak_bytes, 10000 - 400);
}

TEST(ScalingPlan, CountsTheBucketsTwiceBeforeTheFirstStep) {
  StepTrace trace = two_gradients();
  trace.load_bytes = 9900;
  const Scaling scaling = plan(trace, {}, options_with({1, 2}));
  EXPECT_EQ(scaling.rows[0].peak_bytes, 10000);
  EXPECT_EQ(scaling.rows[1].peak_bytes, 9900 + 800);
}

TEST(ScalingPlan, UsesAMeasuredRunsPhasesAndDeviation) {
  MeasuredRun measured;
  measured.step = {.forward_ms = 3, .backward_ms = 6, .update_ms = 1, .deviation_ms = 2};
  const Scaling scaling = plan(two_gradients(), {}, options_with({1, 2}), &measured);
  EXPECT_DOUBLE_EQ(scaling.rows[0].prediction.step_ms, 10);
  EXPECT_GT(scaling.rows[1].prediction.straggler_ms, 1);
}

TEST(ScalingPlan, FitsTheLinkToAFile) {
  const TemporaryFolder folder;
  const std::string file = join_path(folder.path(), "times.jsonl");
  write_file_durably(file,
                     "{\"ranks\":2,\"bytes\":1000000,\"ms\":2}\n"
                     "{\"ranks\":2,\"bytes\":4000000,\"ms\":8}\n",
                     "config");
  EstimateOptions options;
  options.worlds = {2};
  options.all_reduce_file = file;
  const Scaling scaling = plan(two_gradients(), {}, options);
  EXPECT_NEAR(scaling.cluster.intra.gb_per_s, 0.5, 1e-9);
  EXPECT_THAT(scaling.link_source, HasSubstr("2 times"));
  options.link_gb_per_s = 3;
  EXPECT_THROW(plan(two_gradients(), {}, options), ConfigError);
}

TEST(ScalingPlan, TakesTimesOverSeveralHostsForTheNetwork) {
  const TemporaryFolder folder;
  const std::string file = join_path(folder.path(), "times.jsonl");
  write_file_durably(file,
                     "{\"ranks\":4,\"bytes\":1000000,\"ms\":3}\n"
                     "{\"ranks\":4,\"bytes\":4000000,\"ms\":12}\n",
                     "config");
  EstimateOptions options = options_with({4});
  options.all_reduce_file = file;
  options.ranks_per_node = 2;
  const Scaling scaling = plan(two_gradients(), {}, options);
  EXPECT_NEAR(scaling.cluster.inter.gb_per_s, 0.5, 1e-9);
  EXPECT_EQ(scaling.cluster.intra.gb_per_s, kSimple.link_gb_per_s);
  options.inter_latency_us = 3;
  EXPECT_THROW(plan(two_gradients(), {}, options), ConfigError);
}

TEST(ScalingPlan, NamesAFileThatCannotBeUsed) {
  EstimateOptions options;
  options.all_reduce_file = "/absent/times.jsonl";
  EXPECT_THROW(plan(two_gradients(), {}, options), ConfigError);
}

}  // namespace
}  // namespace assay::estimate
