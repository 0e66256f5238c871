#include "harness/statistics.h"

#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::harness {
namespace {

TEST(Median, OfEvenCountIsTheMiddleOfTheTwo) {
  EXPECT_DOUBLE_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
}

TEST(Median, RefusesAnEmptySample) { EXPECT_THROW(median(std::vector<double>{}), InternalError); }

TEST(MedianAbsoluteDeviation, IgnoresOneWildValue) {
  EXPECT_DOUBLE_EQ(median_absolute_deviation(std::vector<double>{1, 2, 3, 4, 1000}), 1);
}

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  const std::vector<double> values = {10, 20, 30, 40, 50};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 10);
  EXPECT_DOUBLE_EQ(quantile(values, 0.95), 48);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 50);
}

TEST(MedianInterval, UsesTheBinomialOrderStatistics) {
  // n = 10 at 95 %: x(2) and x(9) cover with 1 - 2 * 11/1024 = 0.9785 (Conover, table A3).
  const std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const MedianInterval interval = median_interval(values, 0.95);
  EXPECT_DOUBLE_EQ(interval.low, 2);
  EXPECT_DOUBLE_EQ(interval.high, 9);
  EXPECT_NEAR(interval.coverage, 1.0 - 22.0 / 1024.0, 1e-12);
}

TEST(MedianInterval, SaysWhatFewValuesReallyCover) {
  const MedianInterval interval = median_interval(std::vector<double>{3, 1, 2}, 0.95);
  EXPECT_DOUBLE_EQ(interval.low, 1);
  EXPECT_DOUBLE_EQ(interval.high, 3);
  EXPECT_DOUBLE_EQ(interval.coverage, 0.75);
}

TEST(MedianInterval, HoldsTheTrueMedianAsOftenAsItClaims) {
  const unsigned seed = 20261201;
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 engine(seed);
  std::exponential_distribution<double> sample(1.0);
  const double true_median = 0.69314718055994530942;  // ln 2
  int covered = 0;
  const int rounds = 2000;
  for (int i = 0; i < rounds; ++i) {
    std::vector<double> values;
    for (int k = 0; k < 31; ++k) values.push_back(sample(engine));
    const MedianInterval interval = median_interval(values, 0.95);
    if (interval.low <= true_median && true_median <= interval.high) ++covered;
  }
  // Three standard errors of a binomial with p = 0.95 over 2000 rounds are 0.015.
  EXPECT_GE(static_cast<double>(covered) / rounds, 0.95 - 0.015) << "seed " << seed;
}

TEST(FindWarmUp, CutsSlowFirstSteps) {
  std::vector<double> times = {400, 90, 60, 30};
  for (int i = 0; i < 60; ++i) times.push_back(i % 2 == 0 ? 20.0 : 20.4);
  const WarmUp warm_up = find_warm_up(times);
  EXPECT_TRUE(warm_up.is_steady);
  EXPECT_EQ(warm_up.length, 4u);
  EXPECT_NEAR(warm_up.level, 20.2, 0.21);
}

TEST(FindWarmUp, IsZeroForASteadyRunWithOneSpike) {
  std::vector<double> times(50, 10.0);
  times[20] = 300;
  const WarmUp warm_up = find_warm_up(times);
  EXPECT_TRUE(warm_up.is_steady);
  EXPECT_EQ(warm_up.length, 0u);
}

TEST(FindWarmUp, SaysWhenTheFirstHalfNeverReachesTheLevel) {
  std::vector<double> times(20, 100.0);
  for (int i = 0; i < 20; ++i) times.push_back(10.0);
  const WarmUp warm_up = find_warm_up(std::vector<double>(times.begin(), times.end()));
  EXPECT_TRUE(warm_up.is_steady);  // the level is met exactly where the second half begins
  EXPECT_EQ(warm_up.length, 20u);
  std::vector<double> rising;
  for (int i = 0; i < 40; ++i) rising.push_back(i < 30 ? 100.0 : 10.0);
  EXPECT_FALSE(find_warm_up(rising).is_steady);
}

TEST(Summarize, GivesEveryNumberOfOneSample) {
  const Summary summary = summarize(std::vector<double>{1, 2, 3, 4, 5});
  EXPECT_EQ(summary.count, 5u);
  EXPECT_DOUBLE_EQ(summary.median, 3);
  EXPECT_DOUBLE_EQ(summary.mad, 1);
  EXPECT_DOUBLE_EQ(summary.min, 1);
  EXPECT_DOUBLE_EQ(summary.max, 5);
  EXPECT_DOUBLE_EQ(summary.mean, 3);
  EXPECT_DOUBLE_EQ(summary.p95, 4.8);
}

}  // namespace
}  // namespace assay::harness
