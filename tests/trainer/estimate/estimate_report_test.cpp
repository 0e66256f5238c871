#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "trainer/estimate/estimate.h"

namespace assay::estimate {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Estimate sample() {
  Estimate estimate;
  estimate.run = {.model = "gpt2", .precision = "bf16", .optimizer = "adamw", .batch_size = 4};
  estimate.trace.parameters = 124'439'808;
  estimate.trace.parameter_tensors = 148;
  estimate.trace.samples = 4;
  estimate.trace.tokens = 4096;
  estimate.trace.steady_peak = {.bytes = 5'000'000'000,
                                .by_kind = {1'000'000'000, 0, 0, 0, 4'000'000'000, 0, 0}};
  estimate.trace.work = {{"mm", Stage::kForward, Arithmetic::kHalf, 1e12, 1e9},
                         {"mm", Stage::kBackward, Arithmetic::kHalf, 2e12, 2e9},
                         {"adam", Stage::kUpdate, Arithmetic::kSingle, 0, 1e9}};
  estimate.work = work_of(estimate.trace, 2);
  estimate.bounds = card_bounds(estimate.trace, 2);
  estimate.fits = {
      {12,
       Rung{.name = "accumulate",
            .words = {"--batch_size=2", "--gradient_accumulation_steps=2"},
            .needed_bytes = 3'000'000'000},
       {"recompute"}},
      {24, Rung{.name = "as configured", .words = {}, .needed_bytes = 5'850'000'000}, {}},
      {40, std::nullopt, {}}};
  estimate.here = {"CPU", 8'000'000'000, 9'000'000'000};
  estimate.kv_cache = {{1024, 8, 248'879'616, 301'989'888}};
  return estimate;
}

Scaling sample_scaling() {
  Scaling scaling;
  scaling.step_source = "--step-ms 100";
  scaling.link_source = "options";
  scaling.cluster = {.ranks_per_node = 8, .intra = {5, 450}, .inter = {20, 12.5}};
  scaling.step.buckets = {{1e6, 1}, {25e6, 2}};
  scaling.rows = {{{.ranks = 8, .step_ms = 110.4, .efficiency = 0.906}, 5'000'000'000}};
  scaling.below_bound = 16;
  return scaling;
}

TEST(EstimateText, SaysWhatEachPartNeeds) {
  const std::string text = estimate_text(sample());
  EXPECT_THAT(text, AllOf(HasSubstr("gpt2: 124439808 parameters in 148 tensors; bf16, adamw"),
                          HasSubstr("micro-batch 4 x 1024 tokens"), HasSubstr("activations"),
                          HasSubstr("4 GB"), HasSubstr("steady peak"), HasSubstr("6 TFLOP"),
                          HasSubstr("a step as 6 N + 12 L D T a token  6.12 TFLOP")));
}

TEST(EstimateText, SaysThatFloatConvolutionsTakeMore) {
  Estimate estimate = sample();
  estimate.trace.work.push_back({"convolution", Stage::kForward, Arithmetic::kHalf, 1e9, 1e6});
  EXPECT_THAT(estimate_text(estimate), Not(HasSubstr("cuDNN takes more")));
  estimate.trace.work.push_back({"convolution", Stage::kForward, Arithmetic::kSingle, 1e9, 1e6});
  EXPECT_THAT(estimate_text(estimate), HasSubstr("cuDNN takes more"));
  estimate.run.is_gpu = false;
  EXPECT_THAT(estimate_text(estimate), Not(HasSubstr("cuDNN takes more")));
}

TEST(EstimateText, SaysWhichCardsFitAndHow) {
  const std::string text = estimate_text(sample());
  EXPECT_THAT(text, AllOf(HasSubstr("with accumulate: --batch_size=2 "
                                    "--gradient_accumulation_steps=2 (recompute: not in this "
                                    "release)"),
                          HasSubstr("as configured"), HasSubstr("not even with every rung")));
}

TEST(EstimateText, SaysWhetherItFitsHere) {
  Estimate estimate = sample();
  EXPECT_THAT(estimate_text(estimate), HasSubstr("Here: CPU, 8.0 GB usable, the run needs 9.0 GB: "
                                                 "it does NOT fit"));
  estimate.here.memory_bytes = 10'000'000'000;
  EXPECT_THAT(estimate_text(estimate), HasSubstr("it fits"));
}

TEST(EstimateText, ShowsRanksOnlyWhenAskedFor) {
  Estimate estimate = sample();
  EXPECT_THAT(estimate_text(estimate), Not(HasSubstr("Several ranks")));
  estimate.scaling = sample_scaling();
  EXPECT_THAT(estimate_text(estimate),
              AllOf(HasSubstr("Several ranks"), HasSubstr("--step-ms 100"), HasSubstr("0.906"),
                    HasSubstr("in 2 bucket(s)"), HasSubstr("falls under 0.9 at 16 ranks")));
}

TEST(EstimateText, HasNoTrailingSpaces) {
  Estimate estimate = sample();
  estimate.scaling = sample_scaling();
  EXPECT_THAT(estimate_text(estimate), Not(HasSubstr(" \n")));
}

TEST(EstimateJson, HoldsTheSameNumbers) {
  Estimate estimate = sample();
  estimate.scaling = sample_scaling();
  const auto json = nlohmann::json::parse(estimate_json(estimate));
  EXPECT_EQ(json.at("schema_version"), 1);
  EXPECT_EQ(json.at("memory").at("steady_peak_bytes"), 5'000'000'000);
  EXPECT_EQ(json.at("memory").at("at_peak").at("activations_bytes"), 4'000'000'000);
  EXPECT_EQ(json.at("flops").at("step"), 6e12);
  EXPECT_EQ(json.at("flops").at("step_by_formula"), 2 * 4096 * 6.0 * 124'439'808);
  EXPECT_EQ(json.at("cards").at(0).at("fits_with").at("rung"), "accumulate");
  EXPECT_EQ(json.at("cards").at(0).at("not_in_this_release").at(0), "recompute");
  EXPECT_TRUE(json.at("cards").at(2).at("fits_with").is_null());
  EXPECT_EQ(json.at("here").at("fits"), false);
  EXPECT_EQ(json.at("kv_cache").at(0).at("cache_bytes"), 301'989'888);
  EXPECT_EQ(json.at("scaling").at("rows").at(0).at("ranks"), 8);
  EXPECT_EQ(json.at("scaling").at("ranks_below_bound"), 16);
}

TEST(WorkOfStep, RepeatsMicroStepsAndNotTheUpdate) {
  const Work work = work_of(sample().trace, 3);
  EXPECT_EQ(work.forward_flops, 3e12);
  EXPECT_EQ(work.backward_flops, 6e12);
  EXPECT_EQ(work.bytes_moved, 3 * 3e9 + 1e9);
}

TEST(WorkOfStep, KnowsThePublishedFormula) {
  StepTrace trace = sample().trace;
  EXPECT_EQ(work_of(trace, 2).formula_flops, 2 * 4096 * 6.0 * 124'439'808);
  trace.kv_elements_per_token = 2 * 12 * 768;
  const double a_token = 6.0 * 124'439'808 + 12.0 * 12 * 768 * 1024;
  EXPECT_EQ(work_of(trace, 2).formula_flops, 2 * 4096 * a_token);
  trace.tokens = 0;  // images
  EXPECT_EQ(work_of(trace, 2).formula_flops, 0);
}

}  // namespace
}  // namespace assay::estimate
