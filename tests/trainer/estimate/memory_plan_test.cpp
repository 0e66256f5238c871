#include "trainer/estimate/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace assay::estimate {
namespace {

using testing::Contains;
using testing::ElementsAre;

constexpr int64_t kGb = 1'000'000'000;

StepTrace trace_with_peak(int64_t bytes) {
  StepTrace trace;
  trace.parameters = 1000;
  trace.steady_peak.bytes = bytes;
  trace.first_peak.bytes = bytes / 2;
  trace.state = {4096, 4096, 8192, 0, 0, 0, 0};
  trace.requested = {4000, 4000, 8000, 0, 0, 0, 0};
  trace.samples = 8;
  return trace;
}

config::RunConfig config_with_batch(int64_t batch) {
  config::RunConfig config;
  config.batch_size = batch;
  return config;
}

TEST(MemoryPlan, TakesTheHighestPeak) {
  StepTrace trace = trace_with_peak(100);
  trace.load_bytes = 120;
  trace.first_peak.bytes = 300;
  EXPECT_EQ(peak_bytes(trace), 300);
}

TEST(MemoryPlan, AddsHeadroomAndOnGpusTheContext) {
  EXPECT_EQ(needed_bytes(trace_with_peak(1000), false), 1050);
  EXPECT_EQ(needed_bytes(trace_with_peak(1000), true), 1050 + kContextBytes);
}

TEST(MemoryPlan, CountsBatchesOfTheLoader) {
  StepTrace trace = trace_with_peak(1000);
  trace.batch_host_bytes = 10;
  config::RunConfig config;
  config.data.prefetch_factor = 3;
  EXPECT_EQ(host_memory(trace, config, true, 4).loader_bytes, (12 + 4 + 2) * 10);
  EXPECT_EQ(host_memory(trace, config, true, 0).loader_bytes, 20);
}

TEST(MemoryPlan, HoldsTheWholeStepInHostMemoryOnTheCpu) {
  const HostMemory host = host_memory(trace_with_peak(kGb), {}, false, 0);
  EXPECT_GE(host.total_bytes(), kGb);
  EXPECT_LT(host_memory(trace_with_peak(kGb), {}, true, 0).weights_bytes, kGb);
}

TEST(CheckpointRoom, CountsTheSavesOfTheRun) {
  config::RunConfig config;
  config.checkpoint.save_steps = 10;
  EXPECT_EQ(checkpoint_room(trace_with_peak(1), config, 25).count, 3);
  config.checkpoint.save_total_limit = 1;  // the newest, the best, and the one being written
  EXPECT_EQ(checkpoint_room(trace_with_peak(1), config, 1000).count, 3);
  config.checkpoint.save_steps = 0;
  EXPECT_EQ(checkpoint_room(trace_with_peak(1), config, 1000).count, 1);
}

TEST(CheckpointRoom, HoldsWeightsAndOptimizerWithoutRounding) {
  constexpr int64_t kMost = 100'000;  // headers, manifest and states
  const int64_t bytes = checkpoint_room(trace_with_peak(1), {}, 1000).bytes_each;
  EXPECT_GE(bytes, 12000);
  EXPECT_LT(bytes, 12000 + kMost);
  StepTrace larger = trace_with_peak(1);
  larger.requested[0] += kGb;  // of weights
  EXPECT_EQ(checkpoint_room(larger, {}, 1000).bytes_each, bytes + kGb);
}

TEST(KvCache, GrowsWithContextAndRequests) {
  StepTrace trace = trace_with_peak(1);
  trace.kv_elements_per_token = 2 * 12 * 768;  // GPT-2: keys and values of 12 layers
  const auto rows = kv_cache(trace, 1024, {1, 8}, 2);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].cache_bytes, 37'748'736);  // 36 MiB a request
  EXPECT_EQ(rows[1].cache_bytes, 8 * 37'748'736);
  EXPECT_EQ(rows[0].weights_bytes, 2000);
}

TEST(KvCache, IsEmptyWithoutAttention) {
  EXPECT_TRUE(kv_cache(trace_with_peak(1), 1024, {1}, 2).empty());
}

// Needs half as much after each halving of the micro-batch, a quarter with --bf16.
StepTrace pretend(const std::vector<std::string>& words) {
  int64_t batch = 8;
  int64_t factor = 4;
  for (const std::string& word : words) {
    if (word.starts_with("--batch_size=")) batch = *parse_int64(word.substr(13));
    if (word == "--bf16") factor = 1;
  }
  return trace_with_peak(batch * factor * kGb);
}

TEST(Ladder, StaysAsConfiguredWhereThatFits) {
  Ladder ladder(config_with_batch(8), trace_with_peak(32 * kGb), true, pretend);
  std::vector<std::string> missing;
  const auto rung = ladder.first_that_fits(40 * kGb, &missing);
  ASSERT_TRUE(rung);
  EXPECT_TRUE(rung->words.empty());
  EXPECT_TRUE(missing.empty());
  EXPECT_EQ(ladder.walked().size(), 1u);  // nothing more was traced
}

TEST(Ladder, HalvesTheMicroBatchAtAConstantGlobalBatch) {
  Ladder ladder(config_with_batch(8), trace_with_peak(32 * kGb), true, pretend);
  std::vector<std::string> missing;
  const auto rung = ladder.first_that_fits(10 * kGb, &missing);
  ASSERT_TRUE(rung);
  EXPECT_EQ(rung->name, "accumulate");
  EXPECT_THAT(rung->words, ElementsAre("--batch_size=2", "--gradient_accumulation_steps=4"));
  EXPECT_EQ(rung->peak_bytes, 8 * kGb);
}

TEST(Ladder, TakesReducedPrecisionAfterAccumulation) {
  Ladder ladder(config_with_batch(8), trace_with_peak(32 * kGb), true, pretend);
  std::vector<std::string> missing;
  const auto rung = ladder.first_that_fits(2 * kGb, &missing);
  ASSERT_TRUE(rung);
  EXPECT_EQ(rung->name, "reduced precision");
  EXPECT_THAT(rung->words, Contains("--batch_size=1"));
  EXPECT_THAT(rung->words, Contains("--bf16"));
}

TEST(Ladder, SaysWhenNothingFits) {
  Ladder ladder(config_with_batch(8), trace_with_peak(32 * kGb), true, pretend);
  std::vector<std::string> missing;
  EXPECT_FALSE(ladder.first_that_fits(kContextBytes, &missing));
}

TEST(Ladder, ShortensTheSequenceOfLanguageModelsLast) {
  StepTrace trace = trace_with_peak(32 * kGb);
  trace.is_language_model = true;
  trace.tokens = 8 * 256;
  std::vector<std::string> lengths;
  Ladder ladder(config_with_batch(8), trace, true, [&](const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      if (word.starts_with("data.sequence_length=")) lengths.push_back(word.substr(21));
    }
    return trace_with_peak(32 * kGb);
  });
  std::vector<std::string> missing;
  EXPECT_FALSE(ladder.first_that_fits(kGb, &missing));
  EXPECT_THAT(lengths, ElementsAre("128", "64"));
}

TEST(Ladder, HasNoHalfOfAnOddBatch) {
  Ladder ladder(config_with_batch(3), trace_with_peak(32 * kGb), true, pretend);
  std::vector<std::string> missing;
  ladder.first_that_fits(kGb, &missing);
  for (const Rung& rung : ladder.walked()) EXPECT_NE(rung.name, "accumulate");
}

}  // namespace
}  // namespace assay::estimate
