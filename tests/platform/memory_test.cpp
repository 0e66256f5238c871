#include "platform/memory.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/platform/fixture_tree.h"

namespace assay::platform {
namespace {

constexpr const char* kMeminfo =
    "MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:   12000000 kB\n"
    "SwapTotal:       4000000 kB\nSwapFree:        3000000 kB\n";

TEST(MemoryFacts, AreReadFromMeminfo) {
  FixtureTree tree;
  tree.add("/proc/meminfo", kMeminfo);
  tree.add("/proc/self/limits",
           "Limit                     Soft Limit           Hard Limit           Units\n"
           "Max locked memory         8388608              16777216             bytes\n");
  tree.add_folder("/dev/shm");
  const MemoryFacts facts = read_memory(tree.roots(), {});
  EXPECT_EQ(facts.total_bytes, 16000000ULL * 1024);
  EXPECT_EQ(facts.available_bytes, 12000000ULL * 1024);
  EXPECT_EQ(facts.swap_bytes, 4000000ULL * 1024);
  EXPECT_EQ(facts.swap_used_bytes, 1000000ULL * 1024);
  EXPECT_EQ(facts.cgroup_limit_bytes, 0U);
  EXPECT_EQ(facts.memlock_limit_bytes, 8388608U);
  EXPECT_GT(facts.shm_bytes, 0U);
}

TEST(MemoryFacts, AreLimitedByTheGroup) {
  FixtureTree tree;
  tree.add("/proc/meminfo", kMeminfo);
  CgroupLimits limits;
  limits.memory_limit_bytes = 2000000000;
  limits.memory_room_bytes = 500000000;
  const MemoryFacts facts = read_memory(tree.roots(), limits);
  EXPECT_EQ(facts.cgroup_limit_bytes, 2000000000U);
  EXPECT_EQ(facts.available_bytes, 500000000U);
}

TEST(MemoryFacts, IgnoreGroupLimitAboveTheMachine) {
  FixtureTree tree;
  tree.add("/proc/meminfo", kMeminfo);
  CgroupLimits limits;
  limits.memory_limit_bytes = uint64_t{1} << 50;
  limits.memory_room_bytes = 1;
  const MemoryFacts facts = read_memory(tree.roots(), limits);
  EXPECT_EQ(facts.cgroup_limit_bytes, 0U);
  EXPECT_EQ(facts.available_bytes, 12000000ULL * 1024);
}

TEST(MemoryFacts, SayUnlimitedMemlockAsLargestNumber) {
  FixtureTree tree;
  tree.add("/proc/self/limits",
           "Max locked memory         unlimited            unlimited   bytes\n");
  EXPECT_EQ(read_memory(tree.roots(), {}).memlock_limit_bytes,
            std::numeric_limits<uint64_t>::max());
}

TEST(MemoryFacts, AreZeroWhereNothingCanBeRead) {
  FixtureTree tree;
  tree.add("/proc/meminfo", "MemTotal: lots kB\n");
  const MemoryFacts facts = read_memory(tree.roots(), {});
  EXPECT_EQ(facts.total_bytes, 0U);
  EXPECT_EQ(facts.available_bytes, 0U);
  EXPECT_EQ(facts.shm_bytes, 0U);
}

}  // namespace
}  // namespace assay::platform
