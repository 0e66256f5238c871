#include "trainer/estimate/allocator_model.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::estimate {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(AllocatorModel, RoundsToBlocksAndSegments) {
  AllocatorModel allocator;
  allocator.allocate(1);
  EXPECT_EQ(allocator.allocated_bytes(), 512);
  EXPECT_EQ(allocator.reserved_bytes(), 2 * kMiB);
  allocator.allocate(513);
  EXPECT_EQ(allocator.allocated_bytes(), 512 + 1024);
  EXPECT_EQ(allocator.reserved_bytes(), 2 * kMiB);
  allocator.allocate(2 * kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), 22 * kMiB);
  allocator.allocate(11 * kMiB);  // cut from the same segment
  EXPECT_EQ(allocator.reserved_bytes(), 22 * kMiB);
  allocator.allocate(19 * kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), (22 + 20) * kMiB);
}

TEST(AllocatorModel, CountsARestThatIsNotSplitOff) {
  AllocatorModel allocator;
  const auto block = allocator.allocate(12 * kMiB);
  allocator.release(block);
  allocator.allocate(11 * kMiB);  // leaves 1 MiB, too little to split off
  EXPECT_EQ(allocator.allocated_bytes(), 12 * kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), 12 * kMiB);
}

TEST(AllocatorModel, TakesTheSmallestBlockThatFits) {
  AllocatorModel allocator;
  const auto large = allocator.allocate(40 * kMiB);
  const auto small = allocator.allocate(20 * kMiB);
  allocator.release(large);
  allocator.release(small);
  EXPECT_EQ(allocator.allocate(20 * kMiB), small);
}

TEST(AllocatorModel, MergesNeighbours) {
  AllocatorModel allocator;
  std::vector<AllocatorModel::BlockId> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(allocator.allocate(512 * 1024));
  for (const size_t i : {0, 2, 1, 3}) allocator.release(blocks[i]);
  allocator.allocate(kMiB);
  allocator.allocate(kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), 2 * kMiB);
}

TEST(AllocatorModel, KeepsThePeakUntilItIsReset) {
  AllocatorModel allocator;
  allocator.release(allocator.allocate(4 * kMiB));
  EXPECT_EQ(allocator.peak_allocated_bytes(), 4 * kMiB);
  allocator.reset_peak();
  EXPECT_EQ(allocator.peak_allocated_bytes(), 0);
}

TEST(AllocatorModel, TakesNothingForNoBytes) {
  AllocatorModel allocator;
  allocator.release(allocator.allocate(0));
  EXPECT_EQ(allocator.reserved_bytes(), 0);
}

TEST(AllocatorModel, RefusesWhatIsNotAllocated) {
  AllocatorModel allocator;
  const auto block = allocator.allocate(10);
  allocator.release(block);
  EXPECT_THROW(allocator.release(block), InternalError);
  EXPECT_THROW(allocator.allocate(-1), InternalError);
}

TEST(AllocatorModel, GivesBackEverythingWhateverTheOrder) {
  const unsigned seed = 20261201;
  SCOPED_TRACE(seed);
  std::mt19937 generator(seed);
  AllocatorModel allocator;
  std::vector<AllocatorModel::BlockId> live;
  int64_t live_bytes = 0;
  for (int i = 0; i < 5000; ++i) {
    if (live.empty() || generator() % 2 == 0) {
      live.push_back(allocator.allocate(static_cast<int64_t>(generator() % (30u << 20)) + 1));
      live_bytes += allocator.block_bytes(live.back());
    } else {
      const size_t index = generator() % live.size();
      live_bytes -= allocator.block_bytes(live[index]);
      allocator.release(live[index]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(index));
    }
    ASSERT_EQ(allocator.allocated_bytes(), live_bytes);
    ASSERT_LE(allocator.allocated_bytes(), allocator.reserved_bytes());
  }
  for (const auto block : live) allocator.release(block);
  EXPECT_EQ(allocator.allocated_bytes(), 0);
  // All segments are whole again: a request as large as one of them needs no new one.
  const int64_t reserved = allocator.reserved_bytes();
  allocator.allocate(20 * kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), reserved);
}

}  // namespace
}  // namespace assay::estimate
