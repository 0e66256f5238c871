#include "platform/cgroup.h"

#include <gtest/gtest.h>

#include "platform/cpu.h"
#include "tests/platform/fixture_tree.h"

namespace assay::platform {
namespace {

int64_t usable(FixtureTree& tree, int64_t affinity_cpus) {
  const Roots roots = tree.roots(affinity_cpus);
  return usable_cpus(roots, read_cgroup_limits(roots));
}

// Version 1 controllers as a host without cgroup namespaces shows them to a container.
void add_container_of_version_one(FixtureTree& tree) {
  tree.add("/proc/self/cgroup",
           "4:memory:/docker/abc\n3:cpuset:/docker/abc\n2:cpu,cpuacct:/docker/abc\n");
  tree.add("/proc/self/mountinfo",
           "40 30 0:32 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
           "41 30 0:33 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
           "42 30 0:34 /docker/abc /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n");
}

TEST(CgroupLimits, AreAbsentWithoutControlGroups) {
  FixtureTree tree;
  const CgroupLimits limits = read_cgroup_limits(tree.roots());
  EXPECT_EQ(limits.quota_cpus, 0);
  EXPECT_EQ(limits.cpuset_cpus, 0);
  EXPECT_EQ(limits.memory_limit_bytes, 0U);
  EXPECT_EQ(usable(tree, 48), 48);
}

TEST(CgroupLimits, ReadQuotaAndMemoryOfUnifiedHierarchy) {
  FixtureTree tree;
  add_unified_cgroup(tree, "/");
  tree.add("/sys/fs/cgroup/cpu.max", "250000 100000\n");
  tree.add("/sys/fs/cgroup/memory.max", "8589934592\n");
  tree.add("/sys/fs/cgroup/memory.current", "5000000000\n");
  tree.add("/sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 1000000000\n");
  const CgroupLimits limits = read_cgroup_limits(tree.roots());
  EXPECT_EQ(limits.quota_cpus, 2.5);
  EXPECT_EQ(limits.memory_limit_bytes, 8589934592U);
  EXPECT_EQ(limits.memory_room_bytes, 8589934592U - 4000000000U);
  EXPECT_EQ(usable(tree, 128), 2);
}

TEST(CgroupLimits, TakeMaxAsNoLimit) {
  FixtureTree tree;
  add_unified_cgroup(tree, "/user.slice");
  tree.add("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  tree.add("/sys/fs/cgroup/user.slice/memory.max", "max\n");
  const CgroupLimits limits = read_cgroup_limits(tree.roots());
  EXPECT_EQ(limits.quota_cpus, 0);
  EXPECT_EQ(limits.memory_limit_bytes, 0U);
  EXPECT_EQ(usable(tree, 96), 96);
}

TEST(CgroupLimits, TakeSmallestOfAllLevels) {
  FixtureTree tree;
  add_unified_cgroup(tree, "/kubepods/pod:1/box");
  tree.add("/sys/fs/cgroup/kubepods/pod:1/box/cpu.max", "800000 100000\n");
  tree.add("/sys/fs/cgroup/kubepods/pod:1/cpu.max", "200000 100000\n");
  tree.add("/sys/fs/cgroup/kubepods/cpu.max", "max 100000\n");
  tree.add("/sys/fs/cgroup/kubepods/pod:1/box/memory.max", "4000000000\n");
  tree.add("/sys/fs/cgroup/kubepods/memory.max", "2000000000\n");
  const CgroupLimits limits = read_cgroup_limits(tree.roots());
  EXPECT_EQ(limits.quota_cpus, 2.0);
  EXPECT_EQ(limits.memory_limit_bytes, 2000000000U);
  EXPECT_EQ(limits.memory_room_bytes, 2000000000U);
  EXPECT_EQ(usable(tree, 64), 2);
}

TEST(CgroupLimits, RoundFractionOfOneCpuUpToOne) {
  FixtureTree tree;
  add_unified_cgroup(tree, "/");
  tree.add("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(read_cgroup_limits(tree.roots()).quota_cpus, 0.5);
  EXPECT_EQ(usable(tree, 64), 1);
}

TEST(CgroupLimits, RespectCpusetOfTwo) {
  FixtureTree tree;
  add_unified_cgroup(tree, "/box");
  tree.add("/sys/fs/cgroup/box/cpuset.cpus.effective", "4,37\n");
  tree.add("/sys/fs/cgroup/cpuset.cpus.effective", "0-63\n");
  EXPECT_EQ(read_cgroup_limits(tree.roots()).cpuset_cpus, 2);
  EXPECT_EQ(usable(tree, 64), 2);
}

TEST(CgroupLimits, AreRelativeToTheMountsRootInVersionOne) {
  FixtureTree tree;
  add_container_of_version_one(tree);
  tree.add("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n");
  tree.add("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  tree.add("/sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000000\n");
  tree.add("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000000\n");
  tree.add("/sys/fs/cgroup/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 200000000\n");
  tree.add("/sys/fs/cgroup/cpuset/cpuset.cpus", "0-7\n");
  const CgroupLimits limits = read_cgroup_limits(tree.roots());
  EXPECT_EQ(limits.quota_cpus, 3.0);
  EXPECT_EQ(limits.cpuset_cpus, 8);
  EXPECT_EQ(limits.memory_limit_bytes, 3000000000U);
  EXPECT_EQ(limits.memory_room_bytes, 2200000000U);
  EXPECT_EQ(usable(tree, 32), 3);
}

TEST(CgroupLimits, TakeVersionOnesHugeNumberAndMinusOneAsNoLimit) {
  FixtureTree tree;
  add_container_of_version_one(tree);
  tree.add("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  tree.add("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  tree.add("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const CgroupLimits limits = read_cgroup_limits(tree.roots());
  EXPECT_EQ(limits.quota_cpus, 0);
  EXPECT_EQ(limits.memory_limit_bytes, 0U);
  EXPECT_EQ(usable(tree, 32), 32);
}

// The unified hierarchy is mounted without controllers, the limits are in version 1's folders.
TEST(CgroupLimits, AreFoundInMixedHierarchies) {
  FixtureTree tree;
  tree.add("/proc/self/cgroup", "4:memory:/jobs/7\n1:cpu:/\n0::/\n");
  tree.add("/proc/self/mountinfo",
           "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
           "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
           "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  tree.add("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  tree.add("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  tree.add("/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes", "1000000000\n");
  const CgroupLimits limits = read_cgroup_limits(tree.roots());
  EXPECT_EQ(limits.quota_cpus, 1.5);
  EXPECT_EQ(limits.memory_limit_bytes, 1000000000U);
}

TEST(CgroupLimits, FallBackToTheMountWhenThePathLiesOutside) {
  FixtureTree tree;
  add_unified_cgroup(tree, "/../../other");
  tree.add("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(read_cgroup_limits(tree.roots()).quota_cpus, 4.0);
}

TEST(CgroupLimits, IgnoreMalformedFiles) {
  FixtureTree tree;
  add_unified_cgroup(tree, "/");
  tree.add("/sys/fs/cgroup/cpu.max", "many 0\n");
  tree.add("/sys/fs/cgroup/memory.max", "-5\n");
  tree.add("/sys/fs/cgroup/cpuset.cpus.effective", "7-3,x\n");
  const CgroupLimits limits = read_cgroup_limits(tree.roots());
  EXPECT_EQ(limits.quota_cpus, 0);
  EXPECT_EQ(limits.memory_limit_bytes, 0U);
  EXPECT_EQ(limits.cpuset_cpus, 0);
}

}  // namespace
}  // namespace assay::platform
