// What goes wrong between ranks is named, and ends every rank, in time.
#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "tests/support/ranks.h"
#include "trainer/run/run_folder.h"

namespace assay {
namespace {

using support::ProgramEnd;
using testing::HasSubstr;
using Words = std::vector<std::string>;

class RanksFaults : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return join_path(folder_.path(), name); }
  std::vector<ProgramEnd> run(support::RanksRequest request) const {
    request.program = ASSAY_TRAIN_PROGRAM;
    request.working_directory = folder_.path();
    const double start = monotonic_seconds();
    auto ends = support::run_ranks(request);
    seconds_ = monotonic_seconds() - start;
    return ends;
  }
  using Options = std::map<std::string, std::string>;
  static Words words(const Options& changes = {}) {
    Options options = {
        {"--model", "gpt_tiny"},     {"model.n_layer", "1"},      {"model.n_embd", "32"},
        {"model.n_head", "2"},       {"model.n_positions", "16"}, {"--batch_size", "2"},
        {"--max_steps", "8"},        {"--num_threads", "1"},      {"--num_workers", "0"},
        {"--output_dir", "run"},     {"--save_steps", "4"},       {"--ddp_timeout", "4"},
        {"--max_eval_samples", "8"}, {"--no-tensorboard", ""}};
    for (const auto& [name, value] : changes) options[name] = value;
    Words all = {"train"};
    for (const auto& [name, value] : options) {
      const bool is_option = name.starts_with("--");
      all.push_back(is_option ? name : cat(name, "=", value));
      if (is_option && !value.empty()) all.push_back(value);
    }
    return all;
  }
  // Ranks other than `rank` end with 5 and name it.
  void expect_blamed(const std::vector<ProgramEnd>& ends, int64_t rank) const {
    for (size_t r = 0; r < ends.size(); ++r) {
      if (static_cast<int64_t>(r) == rank) continue;
      EXPECT_EQ(ends[r].code, 5) << support::ends_text(ends);
      EXPECT_THAT(ends[r].output, HasSubstr(cat("rank ", rank, " (host")))
          << support::ends_text(ends);
    }
  }

  TemporaryFolder folder_;
  mutable double seconds_ = 0;
};

TEST_F(RanksFaults, ARankThatThrowsIsNamedByTheOthersWithItsReason) {
  const auto ends = run({.words = words(),
                         .world_size = 3,
                         .environment = {{"ASSAY_FAULTS", "train.backward@1:3=throw"}}});
  EXPECT_EQ(ends[1].code, 1);
  expect_blamed(ends, 1);
  EXPECT_THAT(ends[0].output, HasSubstr("injected fault at train.backward"));
  EXPECT_EQ(run::read_result(path("run"))->status, "failed");
}

TEST_F(RanksFaults, AKilledRankIsNamedWithStepAndPhase) {
  const auto ends = run(
      {.words = words(),
       .world_size = 3,
       .environment = {{"ASSAY_FAULTS", "train.step_end:1+=stall:0.6;train.forward@2:3=kill"}}});
  EXPECT_EQ(ends[2].code, 137);
  expect_blamed(ends, 2);
  EXPECT_THAT(ends[0].output, HasSubstr("last finished step 2"));
}

TEST_F(RanksFaults, AStoppedRankEndsTheOthersInTime) {
  support::RanksRequest request{
      .words = words(),
      .world_size = 2,
      .environment = {{"ASSAY_FAULTS", "train.step_end:1+=stall:0.6;train.forward@1:3=stop"}}};
  const double start = monotonic_seconds();
  double others_end = 0;
  // The stopped one is ended by hand; a launcher would do it.
  request.watch = [&](int64_t rank) {
    if (rank != 1 || monotonic_seconds() - start < 14) return 0;
    others_end = 14;
    return SIGKILL;
  };
  const auto ends = run(request);
  EXPECT_EQ(ends[1].code, 137);
  expect_blamed(ends, 1);
  EXPECT_THAT(ends[0].output, HasSubstr("gives no sign of life"));
  EXPECT_THAT(ends[0].output, HasSubstr("last finished step 2"));
}

TEST_F(RanksFaults, ARankThatHangsIsNamedAndEndedByItsWatch) {
  const auto ends = run({.words = words(),
                         .world_size = 2,
                         .environment = {{"ASSAY_FAULTS", "train.optimizer@1:3=stall:100"}}});
  EXPECT_EQ(ends[0].code, 5);
  EXPECT_EQ(ends[1].code, 5);
  EXPECT_THAT(ends[0].output, HasSubstr("rank 1 (host")) << support::ends_text(ends);
  EXPECT_LT(seconds_, 4 + 5 + 6);  // time-out, 5 s, and a slow machine's start
}

TEST_F(RanksFaults, ASkippedCollectiveEndsEveryRank) {
  const auto ends = run({.words = words(),
                         .world_size = 2,
                         .environment = {{"ASSAY_FAULTS", "defect.skip_collective@1:5=on"}}});
  for (const auto& end : ends) EXPECT_NE(end.code, 0) << support::ends_text(ends);
  EXPECT_THAT(ends[0].output, HasSubstr("rank 1 (host")) << support::ends_text(ends);
}

TEST_F(RanksFaults, AReductionOfAnotherShapeEndsEveryRank) {
  const auto ends = run({.words = words(),
                         .world_size = 2,
                         .environment = {{"ASSAY_FAULTS", "defect.wrong_shape@1:5=on"}}});
  for (const auto& end : ends) EXPECT_NE(end.code, 0) << support::ends_text(ends);
  EXPECT_THAT(cat(ends[0].output, ends[1].output), HasSubstr("rank 1 (host"))
      << support::ends_text(ends);
}

TEST_F(RanksFaults, AWeightThatDiffersIsFoundWithRankStepAndTensor) {
  const auto ends = run({.words = words({{"--check_replicas_steps", "2"}}),
                         .world_size = 3,
                         .environment = {{"ASSAY_FAULTS", "defect.flip_weight@1:3=on"}}});
  for (const auto& end : ends) EXPECT_EQ(end.code, 7) << support::ends_text(ends);
  EXPECT_THAT(ends[0].output, HasSubstr("differ after step 4"));
  EXPECT_THAT(ends[0].output, HasSubstr("wte.weight differs on rank 1 (host"));
}

TEST_F(RanksFaults, OtherStartingWeightsAreReplacedByRankZeros) {
  ASSERT_EQ(run({.words = words(), .world_size = 2})[0].code, 0);
  const std::string digest = run::read_result(path("run"))->state_digest;
  Words again = words({{"--overwrite_output_dir", ""}});
  const auto ends = run({.words = again,
                         .world_size = 2,
                         .environment = {{"ASSAY_FAULTS", "defect.other_weights@1=on"}}});
  EXPECT_EQ(ends[0].code, 0) << support::ends_text(ends);
  EXPECT_EQ(run::read_result(path("run"))->state_digest, digest);
}

TEST_F(RanksFaults, ANanOnOneRankStopsAllWithSevenAndNamesIt) {
  const auto ends = run({.words = words(),
                         .world_size = 2,
                         .environment = {{"ASSAY_FAULTS", "defect.nan_loss@1:3=on"}}});
  for (const auto& end : ends) EXPECT_EQ(end.code, 7) << support::ends_text(ends);
  EXPECT_THAT(ends[0].output, HasSubstr("step 3 (rank 1)"));
}

TEST_F(RanksFaults, ASignalToOneRankStopsAllAtOneStepAfterASave) {
  for (const int signal : {SIGTERM, SIGUSR1}) {
    support::RanksRequest request{.words = words({{"--output_dir", cat("run-", signal)},
                                                  {"--max_steps", "100000"},
                                                  {"--save_steps", "0"}}),
                                  .world_size = 2};
    const std::string metrics = path(cat("run-", signal, "/metrics.jsonl"));
    bool is_sent = false;
    request.watch = [&](int64_t rank) {
      if (rank != 1 || is_sent || !path_exists(metrics)) return 0;
      is_sent = read_file(metrics).size() > 2000;
      return is_sent ? signal : 0;
    };
    const auto ends = run(request);
    for (const auto& end : ends) EXPECT_EQ(end.code, 128 + signal) << support::ends_text(ends);
    const auto result = run::read_result(path(cat("run-", signal)));
    EXPECT_EQ(result->status, "stopped");
    EXPECT_TRUE(path_exists(path(cat("run-", signal, "/checkpoint-", result->final_step))));
  }
}

TEST_F(RanksFaults, MismatchesAreNamedBeforeTraining) {
  const auto expect = [&](const support::RanksRequest& request, int code, const std::string& text) {
    const auto ends = run(request);
    bool is_named = false;
    for (const auto& end : ends) {
      EXPECT_EQ(end.code, code) << support::ends_text(ends);
      is_named = is_named || end.output.find(text) != std::string::npos;
    }
    EXPECT_TRUE(is_named) << text << "\n" << support::ends_text(ends);
    EXPECT_LT(seconds_, 30);
    EXPECT_FALSE(path_exists(path("run/metrics.jsonl")));
  };
  support::RanksRequest other_config{.words = words(), .world_size = 2};
  other_config.words_of[1] = words({{"--learning_rate", "0.5"}});
  expect(other_config, 5, "0.001 on rank 0 (host");
  support::RanksRequest duplicate{.words = words({{"--ddp_join_timeout", "5"}}), .world_size = 3};
  duplicate.environment_of[2] = {{"RANK", "1"}, {"LOCAL_RANK", "1"}};
  expect(duplicate, 5, "two processes have rank 1");
  support::RanksRequest other_world{.words = words({{"--ddp_join_timeout", "5"}}), .world_size = 2};
  other_world.environment_of[1] = {{"WORLD_SIZE", "3"}, {"LOCAL_WORLD_SIZE", "3"}};
  expect(other_world, 5, "the ranks' world sizes differ");
}

TEST_F(RanksFaults, AMissingRankIsNamedWithinItsTimeOut) {
  support::RanksRequest request{.words = words({{"--ddp_join_timeout", "3"}}), .world_size = 3};
  request.words_of[2] = {"--version"};
  const auto ends = run(request);
  EXPECT_EQ(ends[0].code, 5);
  EXPECT_EQ(ends[1].code, 5);
  EXPECT_THAT(ends[0].output, HasSubstr("rank(s) 2 of 3 did not arrive within 3 s"));
  EXPECT_LT(seconds_, 20);
}

TEST_F(RanksFaults, AnUnreachableRankZeroIsNamedWithinTheTimeOut) {
  support::RanksRequest request{.words = words({{"--ddp_join_timeout", "3"}}), .world_size = 2};
  request.words_of[0] = {"--version"};
  const auto ends = run(request);
  EXPECT_EQ(ends[1].code, 5);
  EXPECT_THAT(ends[1].output, HasSubstr("cannot reach rank 0 at 127.0.0.1:"));
  EXPECT_LT(seconds_, 20);
}

TEST_F(RanksFaults, OtherDataOnOneRankIsRefused) {
  create_directories(path("a"));
  create_directories(path("b"));
  write_file_durably(path("a/train.txt"), std::string(4000, 'x'), "result");
  write_file_durably(path("b/train.txt"), std::string(4000, 'y'), "result");
  support::RanksRequest request{.words = words({{"--dataset", "text"}, {"--data_dir", path("a")}}),
                                .world_size = 2};
  request.words_of[1] = words({{"--dataset", "text"}, {"--data_dir", path("b")}});
  const auto ends = run(request);
  for (const auto& end : ends) EXPECT_EQ(end.code, 3) << support::ends_text(ends);
  EXPECT_THAT(ends[0].output, HasSubstr("the ranks' data differ"));
}

TEST_F(RanksFaults, OneRankDecidesWhatTheFolderHolds) {
  // Rank 1 works in a folder of its own and sees nothing of the run.
  create_directories(path("elsewhere"));
  ASSERT_EQ(run({.words = words(), .world_size = 2})[0].code, 0);
  Words more = words({{"--max_steps", "10"}, {"--resume_from_checkpoint", "auto"}});
  const auto ends = run({.words = more, .world_size = 2});
  for (const auto& end : ends) EXPECT_EQ(end.code, 0) << support::ends_text(ends);
  EXPECT_EQ(run::read_result(path("run"))->final_step, 10);
}

TEST_F(RanksFaults, AFailingSaveEndsAllRanksWithFour) {
  const auto ends =
      run({.words = words(),
           .world_size = 2,
           .environment = {{"ASSAY_FAULTS", "checkpoint.model.write:1+=errno:ENOSPC"}}});
  for (const auto& end : ends) EXPECT_EQ(end.code, 4) << support::ends_text(ends);
  EXPECT_THAT(ends[1].output, HasSubstr("rank 0 (host"));
}

TEST_F(RanksFaults, AWrongSettingIsRefusedByEveryRankWithTwo) {
  const auto ends =
      run({.words = words({{"--resume_from_checkpoint", "latest"}}), .world_size = 2});
  for (const auto& end : ends) EXPECT_EQ(end.code, 4) << support::ends_text(ends);
}

}  // namespace
}  // namespace assay
