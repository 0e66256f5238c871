#include "trainer/run/run_start.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "checkpoints/writer.h"
#include "trainer/config/config_io.h"
#include "trainer/metrics/step_record.h"
#include "trainer/run/run_folder.h"

namespace assay::run {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

std::string refusal(const Words& words, bool is_restart = false) {
  try {
    decide_start(words, is_restart);
  } catch (const Error& error) {
    return cat(static_cast<int>(error.code()), ": ", error.what());
  }
  return "accepted";
}

// A run folder as the trainer leaves it, with a small state.
class RunStartTest : public ::testing::Test {
 protected:
  std::string run_dir() const { return join_path(folder_.path(), "run"); }

  Words words(const Words& more = {}) const {
    Words list{"--output_dir", run_dir(), "--max_steps", "20", "--save_steps", "5"};
    list.insert(list.end(), more.begin(), more.end());
    return list;
  }

  config::RunConfig resolved(const Words& more = {}) const {
    return config::parse_train_arguments(words(more)).config;
  }

  void write_config(const config::RunConfig& config) const {
    create_directories(run_dir());
    write_file_durably(join_path(run_dir(), kConfigFile), config::config_to_json(config), "config");
  }

  std::string commit(int64_t step, const config::RunConfig& config) const {
    const std::vector<float> values{1.0F, 2.0F, static_cast<float>(step)};
    create_directories(run_dir());
    checkpoints::CommitRequest request;
    request.run_dir = run_dir();
    request.parts.model.push_back(
        {"weight", "F32", {3}, values.data(), sizeof(float) * values.size()});
    request.parts.optimizer.push_back(
        {"exp_avg/weight", "F32", {3}, values.data(), sizeof(float) * values.size()});
    request.parts.trainer.step = step;
    request.parts.trainer.updates = step;
    request.parts.trainer.schedule_type = config.schedule.type;
    request.parts.trainer.schedule_total_steps = 20;
    request.parts.trainer.optimizer = config.optimizer.name;
    request.parts.trainer.run_id = run_id_;
    request.parts.trainer.config_json = config::config_to_json(config);
    request.parts.ranks.push_back({0, "00ff", ""});
    request.config_digest = config::identity_digest(config);
    request.data_digest = "data";
    return checkpoints::commit_checkpoint(request).path;
  }

  void write_metrics(int64_t steps) const {
    std::string text;
    for (int64_t step = 1; step <= steps; ++step) text += cat("{\"step\":", step, "}\n");
    write_file_durably(join_path(run_dir(), kMetricsFile), text, "config");
  }

  void complete(int64_t step) const {
    RunResult result;
    result.status = "completed";
    result.final_step = step;
    write_file_durably(join_path(run_dir(), kResultFile), to_json(result), "result");
  }

  TemporaryFolder folder_;
  std::string run_id_ = "0123";
};

TEST_F(RunStartTest, StartsFreshInAnEmptyFolder) {
  const RunStart start = decide_start(words(), false);
  EXPECT_EQ(start.kind, StartKind::kFresh);
  EXPECT_EQ(start.config.output_dir, run_dir());
}

TEST_F(RunStartTest, NamesAFolderOfItsOwnWithoutOutputDir) {
  const RunStart start = decide_start(Words{"--max_steps", "1"}, false);
  EXPECT_THAT(start.config.output_dir, AllOf(HasSubstr("runs/"), HasSubstr("-mnist_cnn")));
}

TEST_F(RunStartTest, SaysCompleteForTheSameCommandAgain) {
  write_config(resolved());
  commit(20, resolved());
  complete(20);
  EXPECT_EQ(decide_start(words(), false).kind, StartKind::kComplete);
}

TEST_F(RunStartTest, RefusesAnIncompleteRunAndNamesAuto) {
  write_config(resolved());
  commit(5, resolved());
  EXPECT_THAT(refusal(words()), AllOf(HasSubstr("2: "), HasSubstr("incomplete"),
                                      HasSubstr("--resume_from_checkpoint auto")));
}

TEST_F(RunStartTest, RefusesAnotherConfigurationWithBothValues) {
  write_config(resolved());
  EXPECT_THAT(refusal(words({"--learning_rate", "0.5"})),
              AllOf(HasSubstr("2: "), HasSubstr("optimizer.learning_rate"), HasSubstr("0.001"),
                    HasSubstr("0.5")));
}

TEST_F(RunStartTest, RefusesCheckpointsOfAnotherRun) {
  commit(1000, resolved());
  EXPECT_THAT(refusal(words()), AllOf(HasSubstr("2: "), HasSubstr("--overwrite_output_dir")));
  EXPECT_TRUE(is_directory(join_path(run_dir(), "checkpoint-1000")));
}

TEST_F(RunStartTest, ResumesTheNewestWithAuto) {
  write_config(resolved());
  commit(5, resolved());
  commit(10, resolved());
  const RunStart start = decide_start(words({"--resume_from_checkpoint", "auto"}), false);
  ASSERT_EQ(start.kind, StartKind::kResume);
  EXPECT_EQ(start.checkpoint->trainer.step, 10);
  EXPECT_TRUE(start.is_same_folder);
}

TEST_F(RunStartTest, StartsAnewWithAutoOnlyWhereNothingWasEverSaved) {
  EXPECT_EQ(decide_start(words({"--resume_from_checkpoint", "auto"}), false).kind,
            StartKind::kFresh);
  write_config(resolved());
  write_metrics(5);
  EXPECT_EQ(decide_start(words({"--resume_from_checkpoint", "auto"}), false).kind,
            StartKind::kFresh);
  write_metrics(6);  // past the first save at 5: a checkpoint has been lost
  EXPECT_THAT(refusal(words({"--resume_from_checkpoint", "auto"})), HasSubstr("4: "));
}

TEST_F(RunStartTest, AutoBeforeTheFirstSaveKeepsTheRunsOwnConfiguration) {
  write_config(resolved({"--learning_rate", "0.25"}));
  const RunStart start =
      decide_start(Words{"--output_dir", run_dir(), "--resume_from_checkpoint", "auto"}, false);
  EXPECT_EQ(start.kind, StartKind::kFresh);
  EXPECT_EQ(start.config.max_steps, 20);
  EXPECT_EQ(start.config.optimizer.learning_rate, 0.25);
  EXPECT_THAT(
      refusal({"--output_dir", run_dir(), "--resume_from_checkpoint", "auto", "--seed", "7"}),
      HasSubstr("seed: 42 there, 7 now"));
}

TEST_F(RunStartTest, ARestartWithoutAFolderIsRefused) {
  EXPECT_THAT(refusal(Words{"--max_steps", "5"}, true),
              AllOf(HasSubstr("2: "), HasSubstr("--output_dir")));
}

TEST_F(RunStartTest, ContinuesElsewhereFromAWholeCheckpoint) {
  commit(5, resolved());
  commit(10, resolved());
  write_metrics(12);
  const std::string other = join_path(folder_.path(), "other");
  create_directories(other);
  const auto checkpoint = checkpoints::open_checkpoint(join_path(run_dir(), "checkpoint-10"));
  continue_elsewhere(run_dir(), checkpoint, other);
  EXPECT_TRUE(checkpoints::verify_checkpoint(join_path(other, "checkpoint-10")).empty());
  EXPECT_EQ(checkpoints::read_latest(other), join_path(other, "checkpoint-10"));
  EXPECT_EQ(metrics::split_log_at_step(read_file(join_path(other, kMetricsFile)), 10).later, "");
  // Without config.json, which the trainer writes last, nobody takes it for a run that never saved.
  EXPECT_EQ(
      decide_start(Words{"--output_dir", other, "--resume_from_checkpoint", "auto"}, false).kind,
      StartKind::kResume);
}

TEST_F(RunStartTest, WillNotOverwriteWhatItResumesFrom) {
  commit(5, resolved());
  create_directories(join_path(run_dir(), "abandoned-1"));
  const std::string inside = join_path(run_dir(), "abandoned-1/checkpoint-5");
  rename_path(join_path(run_dir(), "checkpoint-5"), inside, "checkpoint.rename");
  EXPECT_THAT(refusal({"--resume_from_checkpoint", inside, "--output_dir", run_dir(),
                       "--overwrite_output_dir"}),
              HasSubstr("would remove"));
}

TEST_F(RunStartTest, RemovesWhatAKillInADurableWriteLeft) {
  create_directories(run_dir());
  for (const char* name :
       {".metrics.jsonl.tmp-0123abcd", ".config.json.tmp-00000000", ".notes.tmp-01234567",
        ".config.json.tmp-xyz", "config.json.tmp-01234567"}) {
    write_file_durably(join_path(run_dir(), name), "x", "config");
  }
  remove_stale_files(run_dir());
  EXPECT_EQ(list_directory(run_dir()),
            (Words{".config.json.tmp-xyz", ".notes.tmp-01234567", "config.json.tmp-01234567"}));
}

TEST_F(RunStartTest, LatestMustExist) {
  EXPECT_THAT(refusal(words({"--resume_from_checkpoint", "latest"})), HasSubstr("4: "));
}

TEST_F(RunStartTest, AutoIsTheDefaultUnderARestart) {
  write_config(resolved());
  commit(5, resolved());
  EXPECT_EQ(decide_start(words(), true).kind, StartKind::kResume);
}

TEST_F(RunStartTest, TakesWhatIsNotGivenFromTheRunItself) {
  commit(5, resolved({"--learning_rate", "0.25"}));
  const RunStart start = decide_start(
      Words{"--resume_from_checkpoint", join_path(run_dir(), "checkpoint-5"), "--max_steps", "35"},
      false);
  EXPECT_EQ(start.config.optimizer.learning_rate, 0.25);
  EXPECT_EQ(start.config.max_steps, 35);
  EXPECT_EQ(start.config.output_dir, run_dir());
}

TEST_F(RunStartTest, FollowsAMovedRunFolder) {
  commit(5, resolved());
  const std::string moved = join_path(folder_.path(), "moved");
  rename_path(run_dir(), moved, "checkpoint.rename");
  const RunStart start = decide_start(Words{"--resume_from_checkpoint", moved}, false);
  EXPECT_EQ(start.config.output_dir, moved);
}

TEST_F(RunStartTest, RefusesAChangedFieldUnlessAllowed) {
  commit(5, resolved());
  const Words change = words({"--resume_from_checkpoint", "auto", "--seed", "7"});
  EXPECT_THAT(refusal(change), AllOf(HasSubstr("2: "), HasSubstr("seed: 42 there, 7 now")));
  Words allowed = change;
  allowed.insert(allowed.end(), {"--allow_config_change", "seed"});
  EXPECT_EQ(decide_start(allowed, false).config.seed, 7U);
}

TEST_F(RunStartTest, AnotherOutputDirKeepsTheOldOneApart) {
  commit(5, resolved());
  const std::string other = join_path(folder_.path(), "other");
  const RunStart start =
      decide_start(Words{"--resume_from_checkpoint", join_path(run_dir(), "checkpoint-5"),
                         "--output_dir", other},
                   false);
  EXPECT_FALSE(start.is_same_folder);
  EXPECT_EQ(start.config.output_dir, other);
  EXPECT_EQ(start.source_run_dir, run_dir());
}

TEST_F(RunStartTest, TakesANewHorizonOnlyAtTheOldOnesEnd) {
  const Words decaying{"--lr_scheduler_type", "linear"};
  commit(5, resolved(decaying));
  const Words early = words({"--resume_from_checkpoint", "auto", "schedule.total_steps=40"});
  EXPECT_THAT(refusal(early), AllOf(HasSubstr("schedule.total_steps is 20"), HasSubstr("40 now")));
  commit(20, resolved(decaying));
  EXPECT_EQ(decide_start(early, false).schedule_total_steps, 40);
}

TEST_F(RunStartTest, PutsLaterLinesAndCheckpointsAside) {
  for (const int64_t step : {5, 10, 15}) commit(step, resolved());
  write_metrics(17);
  const std::string name = put_aside_later(run_dir(), 10, "checkpoint-10");
  EXPECT_EQ(name, "abandoned-1");
  EXPECT_TRUE(is_directory(join_path(run_dir(), "abandoned-1/checkpoint-15")));
  EXPECT_TRUE(is_directory(join_path(run_dir(), "checkpoint-5")));
  EXPECT_EQ(checkpoints::read_latest(run_dir()), join_path(run_dir(), "checkpoint-10"));
  const std::string kept = read_file(join_path(run_dir(), kMetricsFile));
  EXPECT_THAT(kept, AllOf(HasSubstr("{\"step\":10}\n"), ::testing::Not(HasSubstr(":11"))));
  EXPECT_THAT(read_file(join_path(run_dir(), "abandoned-1/metrics.jsonl")),
              HasSubstr("{\"step\":11}\n"));
  EXPECT_EQ(put_aside_later(run_dir(), 10, "checkpoint-10"), "");
}

TEST_F(RunStartTest, ACompletedRunThatLostItsCheckpointsIsNotBegunAnew) {
  write_config(resolved());
  complete(20);
  EXPECT_THAT(refusal(words({"--resume_from_checkpoint", "auto"})), HasSubstr("4: "));
}

TEST_F(RunStartTest, RefusesAFolderWithCheckpointsOfSeveralRuns) {
  const std::string path = commit(5, resolved());
  run_id_ = "another";
  commit(10, resolved());
  EXPECT_THAT(refusal({"--resume_from_checkpoint", path}),
              AllOf(HasSubstr("2: "), HasSubstr("checkpoint-10"), HasSubstr("--output_dir")));
}

TEST_F(RunStartTest, RefusesAForeignConfigurationFile) {
  create_directories(run_dir());
  write_file_durably(join_path(run_dir(), kConfigFile), "{\"architectures\": [\"GPT2\"]}",
                     "config");
  EXPECT_THAT(refusal(words()), AllOf(HasSubstr("2: "), HasSubstr("architectures")));
  EXPECT_THAT(refusal(words({"--overwrite_output_dir"})), HasSubstr("2: "));
}

TEST_F(RunStartTest, SaysThatALiveRunIsInUse) {
  write_config(resolved());
  std::string holder;
  const auto lock = FolderLock::try_lock(join_path(run_dir(), ".lock"), &holder);
  ASSERT_TRUE(lock);
  EXPECT_THAT(refusal(words()), AllOf(HasSubstr("4: "), HasSubstr("in use by process")));
}

TEST_F(RunStartTest, EpochsDoNotSilentlyLoseToAStoredStepTarget) {
  commit(5, resolved());
  EXPECT_THAT(refusal({"--output_dir", run_dir(), "--resume_from_checkpoint", "auto",
                       "--num_train_epochs", "1"}),
              AllOf(HasSubstr("2: "), HasSubstr("max_steps 20")));
}

TEST_F(RunStartTest, LogLinesThatCannotBeReadAreNotCutAway) {
  create_directories(run_dir());
  const std::string path = join_path(run_dir(), kMetricsFile);
  const std::string lines = "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n";
  write_file_durably(path, lines, "config");
  EXPECT_EQ(check_kept_lines(run_dir(), 3), "");
  EXPECT_EQ(check_kept_lines(run_dir(), 2), "");
  EXPECT_THAT(check_kept_lines(run_dir(), 4), HasSubstr("lacks step 4"));
  write_file_durably(path, "{\"step\":1}\nX{\"step\":2}\n{\"step\":3}\n", "config");
  EXPECT_THROW(check_kept_lines(run_dir(), 3), CheckpointError);
  write_file_durably(path, lines + "{\"st", "config");  // torn by a kill, after what counts
  EXPECT_EQ(check_kept_lines(run_dir(), 3), "");
  remove_file(path);
  EXPECT_THAT(check_kept_lines(run_dir(), 3), HasSubstr("is missing"));
}

TEST_F(RunStartTest, OverwritingKeepsWhatLiesInsideItsFolders) {
  write_config(resolved());
  const std::string path = commit(5, resolved());
  create_directories(join_path(run_dir(), "abandoned-1"));
  write_file_durably(join_path(run_dir(), "abandoned-1/thesis.txt"), "mine", "config");
  write_file_durably(join_path(path, "README.txt"), "mine", "config");
  remove_run(run_dir());
  EXPECT_EQ(list_directory(run_dir()), (Words{"abandoned-1", "checkpoint-5"}));
  EXPECT_EQ(list_directory(path), Words{"README.txt"});
  EXPECT_EQ(list_directory(join_path(run_dir(), "abandoned-1")), Words{"thesis.txt"});
}

TEST_F(RunStartTest, AForeignFolderNamedLikeACheckpointStays) {
  commit(5, resolved());
  create_directories(join_path(run_dir(), "checkpoint-1000"));
  write_file_durably(join_path(run_dir(), "checkpoint-1000/weights.bin"), "mine", "config");
  put_aside_later(run_dir(), 5, "checkpoint-5");
  EXPECT_TRUE(path_exists(join_path(run_dir(), "checkpoint-1000/weights.bin")));
}

TEST_F(RunStartTest, OverwritingKeepsForeignFiles) {
  write_config(resolved());
  commit(5, resolved());
  write_metrics(5);
  write_file_durably(join_path(run_dir(), "notes.txt"), "mine", "config");
  create_directories(join_path(run_dir(), "checkpoint-7"));
  remove_run(run_dir());
  EXPECT_EQ(list_directory(run_dir()), (Words{"checkpoint-7", "notes.txt"}));
}

TEST_F(RunStartTest, ProvesTheFolderWritableWithoutLitter) {
  prepare_folder(run_dir());
  EXPECT_TRUE(list_directory(run_dir()).empty());
  const std::string file = join_path(folder_.path(), "file");
  write_file_durably(file, "x", "config");
  EXPECT_THROW(prepare_folder(join_path(file, "run")), CheckpointError);
}

TEST(RunResultFile, RoundTripsANonFiniteLoss) {
  const TemporaryFolder folder;
  RunResult result;
  result.status = "diverged";
  result.final_loss = std::numeric_limits<double>::quiet_NaN();
  result.stop_reason = "loss is nan";
  write_file_durably(join_path(folder.path(), kResultFile), to_json(result), "result");
  const auto read = read_result(folder.path());
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(std::isnan(read->final_loss));
  EXPECT_EQ(read->stop_reason, "loss is nan");
}

}  // namespace
}  // namespace assay::run
