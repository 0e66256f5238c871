#include "data/sampler.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<int64_t> order_of(uint64_t seed, int64_t epoch, int64_t size) {
  const EpochPermutation permutation(seed, epoch, size);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < size; ++i) order.push_back(permutation(i));
  return order;
}

std::vector<int64_t> ascending(int64_t size) {
  std::vector<int64_t> ids(static_cast<size_t>(size));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// Every sample that `config`'s ranks use for a window, micro-step by micro-step, rank by rank.
std::vector<int64_t> ids_of_all_ranks(SamplerConfig config, const StepWindow& window) {
  std::vector<int64_t> ids;
  for (int64_t micro_step = 0; micro_step < config.grad_accum_steps; ++micro_step) {
    for (config.rank = 0; config.rank < config.world_size; ++config.rank) {
      const std::vector<int64_t> part = Sampler(config).rank_ids(window, micro_step);
      EXPECT_LE(part.size(), static_cast<size_t>(config.micro_batch_size));
      ids.insert(ids.end(), part.begin(), part.end());
    }
    config.rank = 0;
  }
  return ids;
}

struct Draw {
  std::mt19937_64 engine;
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  }
};

constexpr uint64_t kPropertySeed = 20261201;

TEST(EpochPermutation, HitsEveryIndexOnceForManySizes) {
  std::vector<int64_t> sizes = ascending(300);
  for (const int64_t power : {512, 1024, 4096, 65536}) {
    for (const int64_t offset : {-1, 0, 1}) sizes.push_back(power + offset);
  }
  for (const int64_t size : sizes) {
    if (size == 0) continue;
    std::vector<int64_t> order = order_of(7, 3, size);
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order, ascending(size)) << "size " << size;
  }
}

TEST(EpochPermutation, ReachesIndicesOfHugeDataSets) {
  const int64_t size = (int64_t{1} << 62) + 12345;
  const EpochPermutation permutation(1, 0, size);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t value = permutation(size - 1 - i);
    EXPECT_GE(value, 0);
    EXPECT_LT(value, size);
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(EpochPermutation, DiffersBetweenEpochsAndSeeds) {
  std::set<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    for (uint64_t seed = 0; seed < 20; ++seed) orders.insert(order_of(seed, epoch, 40));
  }
  EXPECT_EQ(orders.size(), 400U);
}

TEST(EpochPermutation, UsesEveryBitOfTheSeed) {
  std::set<std::vector<int64_t>> orders;
  for (int bit = 0; bit < 64; ++bit) orders.insert(order_of(uint64_t{1} << bit, 0, 64));
  EXPECT_EQ(orders.size(), 64U);
}

TEST(EpochPermutation, StaysTheSameInEveryRelease) {
  // Recorded when this order was introduced: another value breaks every resume of an older run.
  EXPECT_EQ(order_of(42, 0, 10), (std::vector<int64_t>{9, 7, 4, 1, 8, 6, 0, 3, 2, 5}));
}

// Chi-square of all n! permutations over many seeds. With k - 1 degrees of freedom the statistic of
// a uniform draw exceeds (k - 1) + 6 sqrt(2 (k - 1)) about once in 10^6 draws or less often.
TEST(EpochPermutation, DrawsSmallPermutationsUniformly) {
  for (const int64_t size : {2, 3, 4, 5}) {
    std::map<std::vector<int64_t>, int64_t> counts;
    constexpr int64_t kDraws = 12000;
    for (int64_t i = 0; i < kDraws; ++i) {
      ++counts[order_of(static_cast<uint64_t>(i / 10), i % 10, size)];
    }
    int64_t factorial = 1;
    for (int64_t i = 2; i <= size; ++i) factorial *= i;
    ASSERT_EQ(static_cast<int64_t>(counts.size()), factorial);
    const double expected = static_cast<double>(kDraws) / static_cast<double>(factorial);
    double chi_square = 0;
    for (const auto& [order, count] : counts) {
      const double difference = static_cast<double>(count) - expected;
      chi_square += difference * difference / expected;
    }
    const double freedom = static_cast<double>(factorial - 1);
    EXPECT_LT(chi_square, freedom + 6 * std::sqrt(2 * freedom)) << "size " << size;
  }
}

TEST(EpochPermutation, PutsEveryIndexEverywhere) {
  // How often index i lands at place p, for a size that fills its Feistel domain.
  constexpr size_t kSize = 256;
  constexpr int64_t kEpochs = 1000;
  std::vector<int64_t> counts(kSize * kSize);
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const EpochPermutation permutation(99, epoch, kSize);
    for (size_t i = 0; i < kSize; ++i) {
      ++counts[i * kSize + static_cast<size_t>(permutation(static_cast<int64_t>(i)))];
    }
  }
  const double expected = static_cast<double>(kEpochs) / kSize;
  double chi_square = 0;
  for (const int64_t count : counts) {
    const double difference = static_cast<double>(count) - expected;
    chi_square += difference * difference / expected;
  }
  const double freedom = (kSize - 1) * (kSize - 1);
  EXPECT_LT(chi_square, freedom + 6 * std::sqrt(2 * freedom));
}

TEST(EpochPermutation, RefusesPlacesOutside) {
  const EpochPermutation permutation(1, 0, 10);
  EXPECT_THAT(thrown_message<InternalError>([&] { permutation(10); }), HasSubstr("place 10 of 10"));
  EXPECT_THROW(permutation(-1), InternalError);
}

TEST(Sampler, PartitionsEveryEpochExactlyOverRanks) {
  std::cout << "seed " << kPropertySeed << "\n";
  Draw draw{std::mt19937_64(kPropertySeed)};
  for (int trial = 0; trial < 300; ++trial) {
    SamplerConfig config;
    config.dataset_size = draw.between(1, 120);
    config.micro_batch_size = draw.between(1, 6);
    config.grad_accum_steps = draw.between(1, 4);
    config.world_size = draw.between(1, 5);
    config.seed = static_cast<uint64_t>(draw.between(0, 1 << 30));
    config.shuffle = draw.between(0, 3) > 0;
    config.drop_last = draw.between(0, 1) == 1;
    const int64_t global_batch =
        config.micro_batch_size * config.grad_accum_steps * config.world_size;
    if (config.drop_last) config.dataset_size += global_batch;
    SCOPED_TRACE(testing::Message() << "trial " << trial << ": " << config.dataset_size << " / "
                                    << global_batch << " drop " << config.drop_last);
    const Sampler sampler(config);
    std::vector<int64_t> used;
    DataPosition position{.epoch = 2, .samples_in_epoch = 0};
    int64_t steps = 0;
    while (position.epoch == 2) {
      const StepWindow window = sampler.window_at(position);
      const std::vector<int64_t> ids = ids_of_all_ranks(config, window);
      ASSERT_EQ(ids, sampler.window_ids(window));
      ASSERT_EQ(static_cast<int64_t>(ids.size()), window.count);
      used.insert(used.end(), ids.begin(), ids.end());
      position = window.next;
      ++steps;
    }
    EXPECT_EQ(position, (DataPosition{.epoch = 3, .samples_in_epoch = 0}));
    EXPECT_EQ(steps, sampler.steps_per_epoch());
    const int64_t dropped = config.drop_last ? config.dataset_size % global_batch : 0;
    EXPECT_EQ(static_cast<int64_t>(used.size()), config.dataset_size - dropped);
    std::sort(used.begin(), used.end());
    EXPECT_EQ(std::adjacent_find(used.begin(), used.end()), used.end()) << "a sample came twice";
    if (!config.drop_last) {
      EXPECT_EQ(used, ascending(config.dataset_size));
    }
  }
}

TEST(Sampler, ContinuesEqualFromEveryPosition) {
  for (const bool drop_last : {false, true}) {
    const Sampler sampler({.dataset_size = 40,
                           .micro_batch_size = 3,
                           .grad_accum_steps = 2,
                           .seed = 5,
                           .drop_last = drop_last});
    std::vector<DataPosition> positions = {{}};
    std::vector<std::vector<int64_t>> windows;
    for (int step = 0; step < 25; ++step) {
      const StepWindow window = sampler.window_at(positions.back());
      windows.push_back(sampler.window_ids(window));
      positions.push_back(window.next);
    }
    for (size_t from = 0; from < windows.size(); ++from) {
      DataPosition position = positions[from];
      for (size_t step = from; step < windows.size(); ++step) {
        const StepWindow window = sampler.window_at(position);
        ASSERT_EQ(sampler.window_ids(window), windows[step]) << from << " -> " << step;
        position = window.next;
      }
    }
  }
}

TEST(Sampler, GivesTheSameWindowsToEveryWorldSizeOfOneGlobalBatch) {
  const auto windows_of = [](int64_t micro, int64_t accum, int64_t world) {
    SamplerConfig config{.dataset_size = 50,
                         .micro_batch_size = micro,
                         .grad_accum_steps = accum,
                         .world_size = world,
                         .seed = 11};
    std::vector<std::vector<int64_t>> windows;
    DataPosition position;
    for (int step = 0; step < 12; ++step) {
      const StepWindow window = Sampler(config).window_at(position);
      windows.push_back(ids_of_all_ranks(config, window));
      position = window.next;
    }
    return windows;
  };
  EXPECT_EQ(windows_of(12, 1, 1), windows_of(2, 3, 2));
  EXPECT_EQ(windows_of(12, 1, 1), windows_of(1, 3, 4));
}

TEST(Sampler, StartsTheNextEpochAtAnEpochsEnd) {
  const Sampler sampler({.dataset_size = 10, .micro_batch_size = 4, .drop_last = true});
  EXPECT_EQ(sampler.window_at({.epoch = 1, .samples_in_epoch = 4}).next, (DataPosition{2, 0}));
  for (const int64_t place : {8, 10, 11, 1000}) {
    const StepWindow window = sampler.window_at({.epoch = 1, .samples_in_epoch = place});
    EXPECT_EQ(window.epoch, 2) << place;
    EXPECT_EQ(window.first, 0) << place;
    EXPECT_EQ(window.count, 4) << place;
  }
}

TEST(Sampler, DropsShortRestBehindAPositionOfAnotherGlobalBatch) {
  const Sampler sampler({.dataset_size = 12, .micro_batch_size = 4, .drop_last = true});
  EXPECT_EQ(sampler.window_at({.epoch = 0, .samples_in_epoch = 7}).next, (DataPosition{1, 0}));
  EXPECT_EQ(sampler.window_at({.epoch = 0, .samples_in_epoch = 9}).epoch, 1);
}

TEST(Sampler, KeepsStoredOrderWithoutShuffle) {
  const Sampler sampler({.dataset_size = 5, .micro_batch_size = 3, .shuffle = false});
  EXPECT_EQ(sampler.window_ids(sampler.window_at({.epoch = 4, .samples_in_epoch = 3})),
            (std::vector<int64_t>{3, 4}));
}

TEST(Sampler, GivesEmptyPartsToRanksBehindAShortWindow) {
  SamplerConfig config{.dataset_size = 9, .micro_batch_size = 2, .world_size = 8};
  const StepWindow window = Sampler(config).window_at({});
  EXPECT_EQ(window.count, 9);
  config.rank = 4;
  EXPECT_EQ(Sampler(config).rank_ids(window, 0).size(), 1U);
  config.rank = 7;
  EXPECT_TRUE(Sampler(config).rank_ids(window, 0).empty());
}

TEST(Sampler, RefusesDataSmallerThanOneGlobalBatchWithDropLast) {
  const auto message = thrown_message<DataError>([] {
    Sampler({.dataset_size = 9, .micro_batch_size = 2, .world_size = 8, .drop_last = true});
  });
  EXPECT_THAT(message, AllOf(HasSubstr("9 samples"), HasSubstr("16"), HasSubstr("--no-drop_last")));
}

TEST(Sampler, RefusesEmptyData) {
  EXPECT_THAT(
      thrown_message<DataError>([] { Sampler({.dataset_size = 0, .micro_batch_size = 8}); }),
      AllOf(HasSubstr("has 0 samples"), HasSubstr("global batch of 8")));
}

TEST(Sampler, RefusesSizesBelowOneAndOverflow) {
  EXPECT_THAT(
      thrown_message<ConfigError>([] { Sampler({.dataset_size = 4, .micro_batch_size = 0}); }),
      HasSubstr("batch_size is 0, must be >= 1"));
  EXPECT_THAT(
      thrown_message<ConfigError>([] { Sampler({.dataset_size = 4, .grad_accum_steps = -2}); }),
      HasSubstr("gradient_accumulation_steps is -2"));
  EXPECT_THAT(
      thrown_message<ConfigError>([] { Sampler({.dataset_size = 4, .world_size = 2, .rank = 2}); }),
      HasSubstr("rank is 2, must be in [0, 2)"));
  EXPECT_THAT(thrown_message<ConfigError>([] {
                Sampler({.dataset_size = 4,
                         .micro_batch_size = int64_t{1} << 40,
                         .grad_accum_steps = int64_t{1} << 40});
              }),
              HasSubstr("overflows"));
}

TEST(Sampler, RefusesNegativePositions) {
  const Sampler sampler({.dataset_size = 4});
  EXPECT_THAT(
      thrown_message<DataError>([&] { sampler.window_at({.epoch = 0, .samples_in_epoch = -3}); }),
      AllOf(HasSubstr("-3"), HasSubstr(">= 0")));
}

}  // namespace
}  // namespace assay::data
