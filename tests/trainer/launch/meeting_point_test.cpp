#include "trainer/launch/meeting_point.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

RankEnv resolved(const Variables& variables) {
  return resolve_rank_env([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables slurm(const Variables& changes = {}) {
  Variables variables = {{"SLURM_PROCID", "3"},
                         {"SLURM_NTASKS", "4"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_STEP_ID", "2"},
                         {"SLURM_JOB_NAME", "train"},
                         {"SLURM_JOB_ID", "123456"},
                         {"SLURM_NODEID", "1"},
                         {"SLURM_STEP_NODELIST", "n[07-08]"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
  for (const auto& [name, value] : changes) variables[name] = value;
  return variables;
}

TEST(HostList, ExpandsRangesWithLeadingZeros) {
  EXPECT_THAT(expand_host_list("n[1-3,07-08],gpu5"),
              ElementsAre("n1", "n2", "n3", "n07", "n08", "gpu5"));
  EXPECT_THAT(expand_host_list("a,b"), ElementsAre("a", "b"));
  EXPECT_THAT(expand_host_list("rack[1-2]-x"), ElementsAre("rack1-x", "rack2-x"));
  EXPECT_THAT(expand_host_list("n[0-999999999]", 1), ElementsAre("n0"));
}

TEST(HostList, RefusesWhatItCannotRead) {
  for (const char* text : {"", "n[1-", "n[x]", "n[3-1]", "a,,b", "n[1][2]"}) {
    EXPECT_THROW(expand_host_list(text), LaunchError) << text;
  }
}

TEST(TaskCounts, ExpandRepetitions) {
  EXPECT_THAT(expand_task_counts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  for (const char* text : {"", "x", "2(x", "0", "2(x0)"}) {
    EXPECT_THROW(expand_task_counts(text), LaunchError) << text;
  }
}

TEST(MeetingPoint, OfASlurmStepIsItsFirstHost) {
  const RankEnv env = resolved(slurm());
  EXPECT_EQ(env.master_addr, "n07");
  EXPECT_EQ(env.master_port, 15000 + 3456 + 2);
  EXPECT_EQ(env.local_world_size, 2);
  EXPECT_EQ(env.rank, 3);
}

TEST(MeetingPoint, GivenByTheUserWins) {
  const RankEnv env = resolved(slurm({{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "777"}}));
  EXPECT_EQ(env.master_addr, "10.0.0.1");
  EXPECT_EQ(env.master_port, 777);
}

TEST(MeetingPoint, OfMpiOnOneHostIsLoopbackWithAPortOfItsJob) {
  Variables variables = {{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"OMPI_MCA_ess_base_jobid", "2434465793"}};
  const RankEnv first = resolved(variables);
  EXPECT_EQ(first.master_addr, "127.0.0.1");
  variables["OMPI_MCA_ess_base_jobid"] = "2434531329";  // the next job of this host
  EXPECT_NE(resolved(variables).master_port, first.master_port);
}

TEST(MeetingPoint, OfMpiOnSeveralHostsMustBeGiven) {
  const Variables variables = {
      {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  try {
    resolved(variables);
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_THAT(error.what(), HasSubstr("MASTER_ADDR"));
  }
}

}  // namespace
}  // namespace assay::launch
