#include "platform/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "base/text.h"
#include "tests/platform/fixture_tree.h"

namespace assay::platform {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string intel_cpuinfo(int processors) {
  std::string text;
  for (int i = 0; i < processors; ++i) {
    text += cat("processor\t: ", i, "\nmodel name\t: Intel(R) Xeon(R) 8480+\n",
                "flags\t\t: fpu avx avx2 fma avx512f amx_bf16 rdrand\n\n");
  }
  return text;
}

TEST(CpuFacts, DescribeManyCoreHost) {
  FixtureTree tree;
  tree.add("/proc/cpuinfo", intel_cpuinfo(2));
  tree.add("/sys/devices/system/cpu/online", "0-191\n");
  tree.add("/sys/devices/system/node/online", "0-1\n");
  tree.add("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  CgroupLimits limits;
  limits.quota_cpus = 2;
  const CpuFacts facts = read_cpu(tree.roots(192), limits);
  EXPECT_EQ(facts.model, "Intel(R) Xeon(R) 8480+");
  EXPECT_EQ(facts.logical_cpus, 192);
  EXPECT_EQ(facts.available_cpus, 2);
  EXPECT_EQ(facts.cgroup_quota_cpus, 2.0);
  EXPECT_EQ(facts.numa_nodes, 2);
  EXPECT_THAT(facts.features, ElementsAre("avx", "avx2", "fma", "avx512f", "amx_bf16"));
  EXPECT_EQ(facts.governor, "performance");
}

TEST(CpuFacts, CountProcessorsWhereSysIsAbsent) {
  FixtureTree tree;
  tree.add("/proc/cpuinfo", intel_cpuinfo(12));
  const CpuFacts facts = read_cpu(tree.roots(12), {});
  EXPECT_EQ(facts.logical_cpus, 12);
  EXPECT_EQ(facts.numa_nodes, 1);
  EXPECT_EQ(facts.governor, "");
}

TEST(CpuFacts, DescribeArmByImplementerAndPart) {
  FixtureTree tree;
  tree.add("/proc/cpuinfo",
           "processor\t: 0\nFeatures\t: fp asimd sve bf16\nCPU implementer\t: 0x41\nCPU part\t: "
           "0xd4f\n");
  const CpuFacts facts = read_cpu(tree.roots(1), {});
  EXPECT_EQ(facts.model, "implementer 0x41, part 0xd4f");
  EXPECT_THAT(facts.features, ElementsAre("asimd", "sve", "bf16"));
}

TEST(CpuFacts, AreNeverBelowOneCpu) {
  FixtureTree tree;
  const CpuFacts facts = read_cpu(tree.roots(1), {});
  EXPECT_EQ(facts.logical_cpus, 1);
  EXPECT_EQ(facts.available_cpus, 1);
  EXPECT_THAT(facts.features, IsEmpty());
}

TEST(UsableCpus, AreLimitedByAffinityBelowTheQuota) {
  FixtureTree tree;
  CgroupLimits limits;
  limits.quota_cpus = 16;
  EXPECT_EQ(usable_cpus(tree.roots(3), limits), 3);
}

TEST(UsableCpus, RoundTheQuotaDown) {
  FixtureTree tree;
  CgroupLimits limits;
  limits.quota_cpus = 3.99;
  EXPECT_EQ(usable_cpus(tree.roots(64), limits), 3);
}

TEST(UsableCpus, FollowThisProcessesOwnMask) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  const int64_t expected = CPU_COUNT(&mask);
  EXPECT_LE(available_cpus(), expected);
  EXPECT_GE(available_cpus(), 1);
  EXPECT_EQ(usable_cpus(Roots{}, {}), expected);
}

}  // namespace
}  // namespace assay::platform
