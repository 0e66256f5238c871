#include "trainer/launch/rank_env.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"

namespace assay::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

RankEnv resolve(const Variables& variables) {
  return resolve_rank_env([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const Variables& variables) {
  try {
    resolve(variables);
  } catch (const LaunchError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(RankEnv, IsOneProcessWithoutALauncher) {
  const RankEnv env = resolve({});
  EXPECT_EQ(env.rank, 0);
  EXPECT_EQ(env.world_size, 1);
  EXPECT_EQ(env.source, "single process");
}

TEST(RankEnv, ReadsTorchrunsVariables) {
  const RankEnv env = resolve({{"RANK", "5"},
                               {"WORLD_SIZE", "8"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "node-0"},
                               {"MASTER_PORT", "29500"},
                               {"TORCHELASTIC_RESTART_COUNT", "2"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(env.rank, 5);
  EXPECT_EQ(env.world_size, 8);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.master_addr, "node-0");
  EXPECT_EQ(env.master_port, 29500);
  EXPECT_EQ(env.restart_count, 2);
  EXPECT_TRUE(env.has_agent_store);
  EXPECT_EQ(env.source, "torchrun");
}

TEST(RankEnv, TakesAPyTorchJobPodAsOneProcess) {
  const RankEnv env = resolve({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  EXPECT_EQ(env.local_rank, 0);
  EXPECT_EQ(env.source, "PyTorchJob");
}

TEST(RankEnv, PrefersOpenMpiOverTheSlurmJobAroundIt) {
  const RankEnv env = resolve({{"OMPI_COMM_WORLD_RANK", "3"},
                               {"OMPI_COMM_WORLD_SIZE", "4"},
                               {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                               {"MASTER_ADDR", "10.0.0.1"},
                               {"SLURM_PROCID", "0"},
                               {"SLURM_NTASKS", "1"},
                               {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(env.rank, 3);
  EXPECT_EQ(env.source, "Open MPI");
}

TEST(RankEnv, ReadsASlurmStepButNotAnInteractiveShell) {
  Variables variables{{"SLURM_PROCID", "1"},
                      {"SLURM_NTASKS", "2"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_JOB_NAME", "train"}};
  EXPECT_EQ(resolve(variables).rank, 1);
  EXPECT_EQ(resolve(variables).source, "Slurm");
  variables["SLURM_JOB_NAME"] = "interactive";
  EXPECT_EQ(resolve(variables).source, "single process");
}

TEST(RankEnv, RefusesWhatIsNoNumberAndQuotesIt) {
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "abc"}}),
              AllOf(HasSubstr("WORLD_SIZE"), HasSubstr("\"abc\""), HasSubstr("from 1")));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", ""}}),
              AllOf(HasSubstr("LOCAL_RANK"), HasSubstr("\"\"")));
  EXPECT_THAT(refusal({{"MASTER_PORT", "99999"}}),
              AllOf(HasSubstr("MASTER_PORT"), HasSubstr("\"99999\""), HasSubstr("65535")));
  EXPECT_THAT(refusal({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), HasSubstr("\"-1\""));
  EXPECT_THAT(refusal({{"RANK", "1\n\x1b[31m"}, {"WORLD_SIZE", "2"}}),
              ::testing::Not(HasSubstr("\x1b")));
}

TEST(RankEnv, RefusesARankOutsideTheWorld) {
  EXPECT_THAT(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
              AllOf(HasSubstr("RANK"), HasSubstr("\"2\""), HasSubstr("below WORLD_SIZE")));
  EXPECT_THAT(
      refusal({{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}}),
      HasSubstr("below LOCAL_WORLD_SIZE"));
}

TEST(RankEnv, RefusesHalfAContract) {
  EXPECT_THAT(refusal({{"RANK", "0"}}), HasSubstr("WORLD_SIZE is not set"));
  EXPECT_THAT(refusal({{"WORLD_SIZE", "2"}}), HasSubstr("RANK is not set"));
  EXPECT_THAT(refusal({{"LOCAL_RANK", "0"}}), HasSubstr("RANK and WORLD_SIZE"));
}

TEST(ErrorFile, HasTorchrunsForm) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "error.json");
  write_error_file(path, "step 3: \"quoted\"\n<b>");
  const nlohmann::json json = nlohmann::json::parse(read_file(path));
  EXPECT_EQ(json["message"]["message"], "step 3: \"quoted\"\n<b>");
  EXPECT_EQ(json["message"]["extraInfo"]["py_callstack"], "step 3: \"quoted\"\n<b>");
  EXPECT_TRUE(json["message"]["extraInfo"]["timestamp"].is_string());
}

TEST(ErrorFile, DoesNotThrowWhereItCannotBeWritten) {
  EXPECT_NO_THROW(write_error_file("/nonexistent/folder/error.json", "text"));
}

}  // namespace
}  // namespace assay::launch
