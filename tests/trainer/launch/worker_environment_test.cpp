#include "trainer/launch/worker_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::launch {
namespace {

using ::testing::HasSubstr;

std::map<std::string, std::string> environment_of(
    const LaunchOptions& options, const WorkerPlace& place,
    const std::map<std::string, std::string>& own = {}) {
  return worker_environment(options, place, [&](const char* name) -> const char* {
    const auto found = own.find(name);
    return found == own.end() ? nullptr : found->second.c_str();
  });
}

WorkerPlace second_node() {
  WorkerPlace place;
  place.node = {.group_rank = 1,
                .num_nodes = 2,
                .first_rank = 4,
                .world_size = 8,
                .master_addr = "10.0.0.1",
                .master_port = 29501};
  place.num_local_ranks = 4;
  place.local_rank = 2;
  place.attempt = 3;
  return place;
}

TEST(WorkerEnvironment, CountsRanksOverAllNodes) {
  LaunchOptions options;
  options.run_id = "job";
  options.max_restarts = 5;
  auto variables = environment_of(options, second_node());
  EXPECT_EQ(variables["RANK"], "6");
  EXPECT_EQ(variables["ROLE_RANK"], "6");
  EXPECT_EQ(variables["LOCAL_RANK"], "2");
  EXPECT_EQ(variables["GROUP_RANK"], "1");
  EXPECT_EQ(variables["WORLD_SIZE"], "8");
  EXPECT_EQ(variables["MASTER_ADDR"], "10.0.0.1");
  EXPECT_EQ(variables["MASTER_PORT"], "29501");
  EXPECT_EQ(variables["TORCHELASTIC_RESTART_COUNT"], "3");
  EXPECT_EQ(variables["TORCHELASTIC_MAX_RESTARTS"], "5");
  EXPECT_EQ(variables["TORCHELASTIC_RUN_ID"], "job");
}

TEST(WorkerEnvironment, LimitsThreadsOnlyWhereTheUserDidNot) {
  EXPECT_EQ(environment_of({}, second_node())["OMP_NUM_THREADS"], "1");
  EXPECT_EQ(environment_of({}, second_node(), {{"OMP_NUM_THREADS", "4"}}).count("OMP_NUM_THREADS"),
            0U);
  WorkerPlace alone;
  EXPECT_EQ(environment_of({}, alone).count("OMP_NUM_THREADS"), 0U);
}

TEST(WorkerEnvironment, ShowsOneGpuWithAVirtualLocalRank) {
  LaunchOptions options;
  options.is_virtual_local_rank = true;
  EXPECT_EQ(environment_of(options, second_node())["CUDA_VISIBLE_DEVICES"], "2");
  auto variables = environment_of(options, second_node(), {{"CUDA_VISIBLE_DEVICES", "7, 5, 3, 1"}});
  EXPECT_EQ(variables["CUDA_VISIBLE_DEVICES"], "3");
  EXPECT_EQ(variables["LOCAL_RANK"], "0");
}

TEST(WorkerEnvironment, RefusesAVirtualLocalRankWithoutAGpu) {
  LaunchOptions options;
  options.is_virtual_local_rank = true;
  try {
    environment_of(options, second_node(), {{"CUDA_VISIBLE_DEVICES", "0,1"}});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"0,1\""));
    EXPECT_THAT(error.what(), HasSubstr("local rank 2"));
  }
}

}  // namespace
}  // namespace assay::launch
