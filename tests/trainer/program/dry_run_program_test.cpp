// `assay estimate --dry-run-rank`: one process in the role of a rank, against real ranks.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "tests/support/program.h"
#include "tests/support/ranks.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

const Words kRun = {"--model=gpt_tiny", "model.n_layer=1",         "--batch_size=2",
                    "--device=cpu",     "--num_threads=1",         "--num_workers=0",
                    "--max_steps=5",    "--ddp_bucket_cap_mb=0.2", "--ddp_first_bucket_mb=0.1"};

class DryRunProgram : public testing::Test {
 protected:
  support::ProgramEnd estimate(const Words& words) const {
    Words command = {ASSAY_PROGRAM, "estimate"};
    command.insert(command.end(), words.begin(), words.end());
    return support::run_program({.command = command,
                                 .environment = {{"ASSAY_TRAIN", ASSAY_TRAIN_PROGRAM}},
                                 .working_directory = path("empty")});
  }
  // A rank's report.
  Json play(int64_t rank, int64_t world, const Words& more = {}) const {
    Words words = kRun;
    words.insert(words.end(), more.begin(), more.end());
    for (const std::string& word :
         {cat("--world=", world), cat("--dry-run-rank=", rank), std::string("--json")}) {
      words.push_back(word);
    }
    const support::ProgramEnd end = estimate(words);
    EXPECT_EQ(end.code, 0) << end.output;
    return Json::parse(end.output, nullptr, /*allow_exceptions=*/false);
  }
  std::string path(const std::string& name) const { return join_path(folder_.path(), name); }
  void SetUp() override { create_directories(path("empty")); }

 private:
  TemporaryFolder folder_;
};

TEST_F(DryRunProgram, HasTheSamplesAndBucketsOfRealRanks) {
  Words words = {"train",
                 "--output_dir",
                 path("run"),
                 "--log_sample_ids",
                 "--no-tensorboard",
                 "--max_eval_samples=1"};
  words.insert(words.end(), kRun.begin(), kRun.end());
  const auto ends =
      support::run_ranks({.program = ASSAY_TRAIN_PROGRAM, .words = words, .world_size = 3});
  for (const support::ProgramEnd& end : ends) ASSERT_EQ(end.code, 0) << support::ends_text(ends);
  const Json ranks = Json::parse(read_file(path("run/ranks.json")));
  ASSERT_GT(ranks.at("bucket_bytes").size(), 1u);
  for (int64_t rank = 0; rank < 3; ++rank) {
    const Json played = play(rank, 3);
    EXPECT_EQ(played.at("bucket_bytes"), ranks.at("bucket_bytes"));
    Json ids = Json::array();
    for (const std::string& line :
         split(read_file(path(cat("run/ids-rank", rank, ".jsonl"))), '\n')) {
      if (!line.empty()) ids.push_back(Json::parse(line).at("ids"));
    }
    EXPECT_EQ(played.at("sample_ids"), ids) << "rank " << rank;
  }
}

TEST_F(DryRunProgram, ReducesWhatTheEstimatePredicts) {
  Words words = kRun;
  words.insert(words.end(), {"--world=4", "--json"});
  const Json predicted = Json::parse(estimate(words).output);
  const Json played = play(1, 4);
  const Json& buckets = predicted.at("scaling").at("buckets");
  ASSERT_EQ(buckets.size(), played.at("bucket_bytes").size());
  for (size_t i = 0; i < buckets.size(); ++i) {
    EXPECT_EQ(buckets[i].at("bytes").get<double>(), played.at("bucket_bytes")[i].get<double>());
  }
  const int64_t gradients = played.at("gradient_bytes");
  EXPECT_EQ(gradients, 4 * predicted.at("parameters").get<int64_t>());
  // Beside the gradients go the step's sums: a loss a rank, and flags.
  EXPECT_GT(played.at("all_reduce_bytes"), gradients);
  EXPECT_LT(played.at("all_reduce_bytes"), gradients + 1000);
  EXPECT_EQ(played.at("ring_bytes"), 1.5 * played.at("all_reduce_bytes").get<double>());
  EXPECT_GT(played.at("peak_host_bytes"), 4 * gradients);
}

TEST_F(DryRunProgram, GivesEverySampleOfAnEpochToOneRank) {
  int64_t sum = 0;
  std::set<int64_t> seen;
  size_t used = 0;
  for (int64_t rank = 0; rank < 3; ++rank) {
    const Json played = play(rank, 3, {"--max_train_samples=22"});  // 3 steps of 6, one of 4
    EXPECT_EQ(played.at("steps_per_epoch"), 4);
    sum += played.at("samples_per_epoch").get<int64_t>();
    for (size_t step = 0; step < 4; ++step) {
      for (const auto& id : played.at("sample_ids")[step]) {
        seen.insert(id.get<int64_t>());
        ++used;
      }
    }
  }
  EXPECT_EQ(sum, 22);
  EXPECT_EQ(used, 22u);
  EXPECT_EQ(seen.size(), 22u);
}

TEST_F(DryRunProgram, KeepsItsPartOfAShardedOptimizer) {
  const int64_t whole = play(0, 2).at("optimizer_bytes");
  int64_t parts = 0;
  for (int64_t rank = 0; rank < 2; ++rank) {
    const Json played = play(rank, 2, {"ddp.shard_optimizer=true"});
    parts += played.at("optimizer_bytes").get<int64_t>();
    EXPECT_LT(played.at("optimizer_bytes"), whole);
    EXPECT_EQ(played.at("broadcast_bytes"), played.at("parameter_bytes"));
  }
  constexpr int64_t kStepCounter = 4;  // bytes; each rank has its own
  EXPECT_EQ(parts, whole + kStepCounter);
}

TEST_F(DryRunProgram, ClaimsNoLossAndWritesNothing) {
  Words words = kRun;
  words.insert(words.end(), {"--world=8", "--dry-run-rank=7", "--save_steps=1", "--eval_steps=1",
                             "--output_dir", path("empty/run")});
  const support::ProgramEnd end = estimate(words);
  EXPECT_EQ(end.code, 0) << end.output;
  EXPECT_THAT(end.output, AllOf(HasSubstr("In the role of rank 7 of 8 on cpu"),
                                HasSubstr("nothing is learned or written"),
                                HasSubstr("all-reduced a step"), HasSubstr("peak of the process"),
                                Not(HasSubstr("loss")), Not(HasSubstr("saved"))));
  EXPECT_TRUE(list_directory(path("empty")).empty());
}

TEST_F(DryRunProgram, SaysWhenARankHasNothingToDo) {
  Words words = kRun;
  words.insert(words.end(), {"--world=1000", "--dry-run-rank=999", "--max_train_samples=22"});
  EXPECT_THAT(estimate(words).output, HasSubstr("This rank has nothing to do"));
}

TEST_F(DryRunProgram, RefusesRanksThatAreNotThere) {
  const support::ProgramEnd outside = estimate({"--world=4", "--dry-run-rank=4"});
  EXPECT_EQ(outside.code, 2);
  EXPECT_THAT(outside.output, AllOf(HasSubstr("must be from 0 to 3"), HasSubstr("Fix:")));
  const support::ProgramEnd absent =
      estimate({"--model=gpt_tiny", "--dataset=tokens", "--data_dir=absent", "--world=4",
                "--dry-run-rank=1"});
  EXPECT_EQ(absent.code, 3) << absent.output;
}

}  // namespace
}  // namespace assay
