#include "trainer/estimate/scaling_model.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::estimate {
namespace {

// Sums of a few products of doubles: a few units in the last place.
constexpr double kRounding = 1e-12;

Cluster one_node(double latency_us, double gb_per_s) {
  const Link link{latency_us, gb_per_s};
  return {.ranks_per_node = 1 << 20, .intra = link, .inter = link};
}

RankStep step_with(std::vector<Bucket> buckets) {
  return {.forward_ms = 10, .backward_ms = 20, .update_ms = 5, .buckets = std::move(buckets)};
}

TEST(AllReduceTime, IsZeroForOneRank) {
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kHierarchical}) {
    EXPECT_EQ(all_reduce_ms(algorithm, 1e9, 1, one_node(5, 10)), 0.0);
  }
}

TEST(AllReduceTime, IsTheRingsClosedForm) {
  // 2 (n-1) latencies and 2 (n-1)/n S/B: 6 x 10 us, 1.5 x 8e6 B at 2e6 B/ms.
  EXPECT_NEAR(all_reduce_ms(Algorithm::kRing, 8e6, 4, one_node(10, 2)), 0.06 + 6.0, kRounding);
}

TEST(AllReduceTime, ApproachesTwiceTheBytesOnRingsWithoutLatency) {
  // 2 (n-1)/n is below 2 by 2/n.
  EXPECT_NEAR(all_reduce_ms(Algorithm::kRing, 1e6, 1'000'000, one_node(0, 1)), 2.0, 2.1e-6);
  EXPECT_LT(all_reduce_ms(Algorithm::kRing, 1e6, 1'000'000, one_node(0, 1)), 2.0);
}

TEST(AllReduceTime, IsTheTreesClosedForm) {
  // ceil(log2 5) = 3 levels, up and down.
  EXPECT_NEAR(all_reduce_ms(Algorithm::kTree, 1e6, 5, one_node(10, 1)), 0.06 + 2.0, kRounding);
}

TEST(AllReduceTime, SharesTheNetworkAmongTheRanksOfANode) {
  // 2 nodes of 4: 6 steps of a quarter within, then 2 halves of all bytes between.
  const Cluster cluster = {.ranks_per_node = 4, .intra = {0, 100}, .inter = {0, 10}};
  EXPECT_NEAR(all_reduce_ms(Algorithm::kHierarchical, 1e7, 8, cluster),
              1.5 * 1e7 / 1e8 + 1.0 * 1e7 / 1e7, kRounding);
}

TEST(AllReduceTime, GoesAtThePaceOfTheSlowerLink) {
  const Cluster cluster = {.ranks_per_node = 4, .intra = {1, 100}, .inter = {50, 1}};
  EXPECT_EQ(all_reduce_ms(Algorithm::kRing, 1e6, 8, cluster),
            all_reduce_ms(Algorithm::kRing, 1e6, 8, one_node(50, 1)));
  EXPECT_EQ(all_reduce_ms(Algorithm::kRing, 1e6, 4, cluster),
            all_reduce_ms(Algorithm::kRing, 1e6, 4, one_node(1, 100)));
}

TEST(AllReduceTime, RefusesLinksWithoutBandwidthAndNoRanks) {
  EXPECT_THROW(all_reduce_ms(Algorithm::kRing, 1, 2, one_node(1, 0)), InternalError);
  EXPECT_THROW(all_reduce_ms(Algorithm::kRing, 1, 0, one_node(1, 1)), InternalError);
}

TEST(FastestAlgorithm, TakesTreesForShortMessagesOfManyRanks) {
  EXPECT_EQ(fastest_algorithm(1e3, 256, one_node(10, 100)), Algorithm::kTree);
  EXPECT_EQ(fastest_algorithm(1e9, 4, one_node(10, 100)), Algorithm::kRing);
}

TEST(FastestAlgorithm, IsNeverSlowerThanAnother) {
  const unsigned seed = 20261201;
  SCOPED_TRACE(seed);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> exponent(0, 9);
  for (int i = 0; i < 200; ++i) {
    const double bytes = std::pow(10, exponent(generator));
    const auto ranks = static_cast<int64_t>(std::pow(10, exponent(generator) / 3)) + 1;
    const Cluster cluster = {.ranks_per_node = 8, .intra = {5, 300}, .inter = {20, 12.5}};
    const double best =
        all_reduce_ms(fastest_algorithm(bytes, ranks, cluster), bytes, ranks, cluster);
    for (const Algorithm other : {Algorithm::kRing, Algorithm::kTree, Algorithm::kHierarchical}) {
      EXPECT_LE(best, all_reduce_ms(other, bytes, ranks, cluster));
    }
  }
}

TEST(AssignBuckets, ClosesABucketThatHoldsItsCapOrMore) {
  const std::vector<Gradient> gradients = {{60, 0.1}, {50, 0.2}, {90, 0.5}, {20, 0.7}, {5, 1.0}};
  const auto buckets = assign_buckets(gradients, 200, {.cap_bytes = 100, .first_cap_bytes = 50});
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].bytes, 60);
  EXPECT_EQ(buckets[1].bytes, 140);  // 50 is below the cap, so 90 joins it
  EXPECT_EQ(buckets[2].bytes, 25);
  EXPECT_EQ(buckets[0].ready_ms, 20);
  EXPECT_EQ(buckets[1].ready_ms, 100);
  EXPECT_EQ(buckets[2].ready_ms, 200);
}

TEST(AssignBuckets, CapsWhatIsStoredAndSendsWhatIsCompressed) {
  const std::vector<Gradient> gradients = {{100, 0.5}, {100, 1.0}};
  const auto buckets =
      assign_buckets(gradients, 1, {.cap_bytes = 100, .first_cap_bytes = 100, .bytes_factor = 0.5});
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].bytes, 50);
}

TEST(AssignBuckets, LosesNoByte) {
  const unsigned seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937 generator(seed);
  for (int i = 0; i < 50; ++i) {
    std::vector<Gradient> gradients;
    double sum = 0;
    for (int k = 0; k < 40; ++k) {
      gradients.push_back({static_cast<double>(generator() % 1000 + 1), k / 40.0});
      sum += gradients.back().bytes;
    }
    double sent = 0;
    double last_ready = 0;
    for (const Bucket& bucket : assign_buckets(
             gradients, 10, {.cap_bytes = static_cast<double>(generator() % 3000 + 1)})) {
      sent += bucket.bytes;
      EXPECT_GE(bucket.ready_ms, last_ready);
      last_ready = bucket.ready_ms;
    }
    EXPECT_EQ(sent, sum);  // whole numbers
  }
}

TEST(PredictStep, AddsNothingOnOneRank) {
  const auto prediction = predict_step(step_with({{1e9, 0}}), 1, one_node(5, 1));
  EXPECT_EQ(prediction.step_ms, 35);
  EXPECT_EQ(prediction.exposed_comm_ms, 0);
  EXPECT_EQ(prediction.total_comm_ms, 0);
  EXPECT_EQ(prediction.efficiency, 1);
}

TEST(PredictStep, HidesReductionsThatEndBeforeBackward) {
  // 1e6 bytes at 1 GB/s on two ranks: 1 ms each, from 5 and 18 ms on.
  const auto prediction =
      predict_step(step_with({{1e6, 5}, {1e6, 18}}), 2, one_node(0, 1), Algorithm::kRing);
  EXPECT_EQ(prediction.exposed_comm_ms, 0);
  EXPECT_NEAR(prediction.total_comm_ms, 2, kRounding);
  EXPECT_EQ(prediction.step_ms, 35);
}

TEST(PredictStep, ExposesTheWholeReductionOfABucketReadyLast) {
  const auto prediction = predict_step(step_with({{7e6, 20}}), 2, one_node(0, 1), Algorithm::kRing);
  EXPECT_NEAR(prediction.exposed_comm_ms, 7, kRounding);
  EXPECT_NEAR(prediction.step_ms, 42, kRounding);
  EXPECT_NEAR(prediction.efficiency, 35.0 / 42.0, kRounding);
}

TEST(PredictStep, ReducesOneBucketAtATime) {
  // The first takes 30 ms from 2 on, so that the second, ready at 20, starts at 32.
  const auto prediction =
      predict_step(step_with({{30e6, 2}, {4e6, 20}}), 2, one_node(0, 1), Algorithm::kRing);
  EXPECT_NEAR(prediction.exposed_comm_ms, 36 - 20, kRounding);
}

TEST(PredictStep, CommunicatesInTheLastMicroStepOnly) {
  RankStep step = step_with({{7e6, 20}});
  step.grad_accum_steps = 4;
  const auto prediction = predict_step(step, 2, one_node(0, 1), Algorithm::kRing);
  EXPECT_NEAR(prediction.step_ms, 4 * 30 + 5 + 7, kRounding);
}

TEST(PredictStep, WaitsForTheSlowestOfItsRanks) {
  RankStep step = step_with({});
  step.deviation_ms = 2;
  const auto prediction = predict_step(step, 2, one_node(0, 1));
  EXPECT_NEAR(prediction.straggler_ms, 2 * 0.5641895835, 1e-8);  // 1 / sqrt(pi)
}

TEST(PredictStep, GetsNoFasterWithRanksAndNoSlowerWithBandwidth) {
  const unsigned seed = 99;
  SCOPED_TRACE(seed);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> part(0, 1);
  for (int i = 0; i < 100; ++i) {
    std::vector<Bucket> buckets;
    for (int k = 1; k <= 6; ++k) buckets.push_back({part(generator) * 1e8, 20.0 * k / 6});
    const RankStep step = step_with(buckets);
    const double bandwidth = 1 + 100 * part(generator);
    double before = 0;
    for (const int64_t ranks : {1, 2, 3, 4, 8, 16, 64}) {
      const double ms =
          predict_step(step, ranks, one_node(10, bandwidth), Algorithm::kRing).step_ms;
      EXPECT_GE(ms, before - kRounding);
      EXPECT_GE(ms,
                predict_step(step, ranks, one_node(10, 2 * bandwidth), Algorithm::kRing).step_ms -
                    kRounding);
      before = ms;
    }
  }
}

TEST(RanksBelowEfficiency, FindsTheFirstNumber) {
  // The exposed time is 2 (n-1)/n x 4 ms: 4 ms on 2 ranks leave 35/39 = 0.897.
  EXPECT_EQ(ranks_below_efficiency(step_with({{4e6, 20}}), one_node(0, 1), 0.9), 2);
  // 8 ms at most, 35/43 = 0.814: never below 0.8, and 5.33 ms on 3 ranks, 35/40.3, below 0.87.
  EXPECT_EQ(ranks_below_efficiency(step_with({{4e6, 20}}), one_node(0, 1), 0.8), std::nullopt);
  EXPECT_EQ(ranks_below_efficiency(step_with({{4e6, 20}}), one_node(0, 1), 0.87), 3);
}

TEST(ExpectedLargestNormal, MatchesTheTables) {
  // Exact values (Harter 1961, table 1) to five places.
  EXPECT_EQ(expected_largest_normal(1), 0);
  EXPECT_NEAR(expected_largest_normal(2), 0.56419, 1e-5);
  EXPECT_NEAR(expected_largest_normal(3), 0.84628, 1e-5);
  EXPECT_NEAR(expected_largest_normal(10), 1.53875, 1e-5);
  EXPECT_NEAR(expected_largest_normal(100), 2.50759, 1e-5);
}

TEST(ExpectedLargestNormal, StaysBelowItsAsymptote) {
  for (const int64_t n : {2, 8, 64, 1024, 1 << 20}) {
    EXPECT_LT(expected_largest_normal(n), std::sqrt(2 * std::log(static_cast<double>(n))));
  }
}

}  // namespace
}  // namespace assay::estimate
