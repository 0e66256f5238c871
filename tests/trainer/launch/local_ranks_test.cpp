#include "trainer/launch/local_ranks.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace assay::launch {
namespace {

using platform::GpuFacts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<GpuFacts> four_gpus() {
  std::vector<GpuFacts> gpus(4);
  for (size_t i = 0; i < gpus.size(); ++i) {
    gpus[i].index = static_cast<int64_t>(i);
    gpus[i].uuid = cat("GPU-", i, "abc");
    gpus[i].numa_node = i < 2 ? 0 : 1;
  }
  return gpus;
}

std::vector<int64_t> indices(const std::optional<std::string>& visible) {
  std::vector<int64_t> found;
  for (const GpuFacts& gpu : visible_gpus(four_gpus(), visible)) found.push_back(gpu.index);
  return found;
}

TEST(VisibleGpus, FollowCudasRules) {
  EXPECT_THAT(indices(std::nullopt), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(indices("3,1"), ElementsAre(3, 1));
  EXPECT_THAT(indices("GPU-2,0"), ElementsAre(2, 0));
  EXPECT_THAT(indices("0,9,1"), ElementsAre(0));
  EXPECT_THAT(indices(""), IsEmpty());
  EXPECT_THAT(indices("-1"), IsEmpty());
}

TEST(CountLocalRanks, CountsWhatItIsTold) {
  EXPECT_EQ(count_local_ranks("3", 0, 8), 3);
  EXPECT_EQ(count_local_ranks("gpu", 4, 8), 4);
  EXPECT_EQ(count_local_ranks("cpu", 4, 8), 8);
  EXPECT_EQ(count_local_ranks("auto", 4, 8), 4);
  EXPECT_EQ(count_local_ranks("auto", 0, 8), 8);
}

TEST(CountLocalRanks, RefusesGpuWithoutOne) {
  try {
    count_local_ranks("gpu", 0, 8);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("assay doctor"));
  }
}

TEST(CpusOfList, ReadsTheKernelsForm) {
  EXPECT_THAT(cpus_of_list("0-2,8\n"), ElementsAre(0, 1, 2, 8));
  for (const char* text : {"", "a", "3-1", "1-", "-1", "0-99999999", "1,,2"}) {
    EXPECT_THAT(cpus_of_list(text), IsEmpty()) << text;
  }
}

TEST(NumaNodes, AreReadWithTheirCpus) {
  const TemporaryFolder folder("assay-numa");
  const std::string nodes = join_path(folder.path(), "sys/devices/system/node");
  for (const char* name : {"node0", "node1", "node2"}) create_directories(join_path(nodes, name));
  std::ofstream(join_path(nodes, "online")) << "0-2\n";
  std::ofstream(join_path(nodes, "node0/cpulist")) << "0-1\n";
  std::ofstream(join_path(nodes, "node1/cpulist")) << "2-3\n";
  std::ofstream(join_path(nodes, "node2/cpulist")) << "\n";
  platform::Roots roots;
  roots.prefix = folder.path();
  const std::vector<NumaNode> found = read_numa_nodes(roots);
  ASSERT_EQ(found.size(), 2U) << "memory without CPUs is left out";
  EXPECT_THAT(found[1].cpus, ElementsAre(2, 3));
}

const std::vector<NumaNode> kTwoNodes = {{0, {0, 1, 2, 3}}, {1, {4, 5, 6, 7}}};
const std::vector<int64_t> kAll = {0, 1, 2, 3, 4, 5, 6, 7};

TEST(PlanCpus, FollowsTheGpus) {
  const auto plan =
      plan_cpus(kTwoNodes, {.num_local_ranks = 2, .node_of_gpu = {1, 0}, .allowed = kAll});
  EXPECT_THAT(plan[0], ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(plan[1], ElementsAre(0, 1, 2, 3));
}

TEST(PlanCpus, SpreadsRanksEvenlyWhereGpusAreUnknown) {
  const auto plan =
      plan_cpus(kTwoNodes, {.num_local_ranks = 4, .node_of_gpu = {-1, 0, 0, 0}, .allowed = kAll});
  EXPECT_THAT(plan[1], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(plan[2], ElementsAre(4, 5, 6, 7));
}

TEST(PlanCpus, NeverGivesACpuThatIsNotAllowed) {
  const auto plan =
      plan_cpus(kTwoNodes, {.num_local_ranks = 2, .node_of_gpu = {}, .allowed = {1, 2}});
  EXPECT_THAT(plan[0], ElementsAre(1, 2));
  EXPECT_THAT(plan[1], IsEmpty());
}

TEST(AllowedCpus, AreSome) { EXPECT_FALSE(allowed_cpus().empty()); }

}  // namespace
}  // namespace assay::launch
