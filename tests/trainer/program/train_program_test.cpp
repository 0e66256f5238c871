// The trainer as a program: the promises of its command line, on real data.
#include "tests/trainer/program/train_program.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "checkpoints/compare.h"
#include "checkpoints/layout.h"
#include "checkpoints/reader.h"
#include "tests/support/program.h"
#include "trainer/metrics/step_record.h"
#include "trainer/run/run_folder.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(TrainProgram, RunsTheGuidesTwoLinesAsWritten) {
  const auto first = train({"--max_steps", "30", "--batch_size", "1", "--save_steps", "15",
                            "--output_dir", "checkpoints/smoke"});
  ASSERT_EQ(first.code, 0) << first.output;
  const auto second =
      train({"--resume_from_checkpoint", "checkpoints/smoke/checkpoint-15", "--max_steps", "35"});
  ASSERT_EQ(second.code, 0) << second.output;
  const std::string run_dir = path("checkpoints/smoke");
  EXPECT_EQ(steps_of(run_dir), one_to(35));
  EXPECT_TRUE(is_directory(join_path(run_dir, "abandoned-1/checkpoint-30")));
  EXPECT_EQ(checkpoints::read_latest(run_dir), join_path(run_dir, "checkpoint-35"));
  // 30 -> 35 is the same run as 35.
  ASSERT_EQ(train({"--max_steps", "35", "--batch_size", "1", "--save_steps", "15", "--output_dir",
                   "whole"})
                .code,
            0);
  EXPECT_EQ(result_of(run_dir).state_digest, result_of(path("whole")).state_digest);
}

TEST_F(TrainProgram, SaysCompleteAndTouchesNothingTheSecondTime) {
  const Words words = small_digits("run");
  ASSERT_EQ(train(words).code, 0);
  std::map<std::string, std::filesystem::file_time_type> before;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path("run"))) {
    before[entry.path().string()] = entry.last_write_time();
  }
  for (const Words& again : {words, resumed(words)}) {
    const auto end = train(again);
    EXPECT_EQ(end.code, 0);
    EXPECT_THAT(end.output, HasSubstr("already complete"));
  }
  std::map<std::string, std::filesystem::file_time_type> after;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path("run"))) {
    after[entry.path().string()] = entry.last_write_time();
  }
  EXPECT_EQ(before, after);
}

TEST_F(TrainProgram, AKillAtEveryPointEndsAsTheControl) {
  for (const bool is_text : {false, true}) {
    const auto words = [&](const std::string& run_dir) {
      return is_text ? small_text(run_dir) : small_digits(run_dir);
    };
    const std::string control = path(is_text ? "text-control" : "digits-control");
    ASSERT_EQ(train(words(control)).code, 0);
    int number = 0;
    for (const char* fault :
         {"train.first_batch=kill", "train.forward:6=kill", "train.backward:3=kill",
          "train.optimizer:9=kill", "checkpoint.begin:2=kill", "checkpoint.model.write:2=kill",
          "checkpoint.manifest.fsync:2=kill", "checkpoint.rename:2=kill",
          "checkpoint.latest.rename:2=kill", "checkpoint.done:3=kill", "result.rename=kill"}) {
      const std::string run_dir = path(cat(is_text ? "text-" : "digits-", ++number));
      EXPECT_EQ(train(words(run_dir), fault).code, 128 + SIGKILL) << fault;
      const auto end = train(resumed(words(run_dir)));
      ASSERT_EQ(end.code, 0) << fault << "\n" << end.output;
      SCOPED_TRACE(fault);
      expect_same_run(control, run_dir);
    }
  }
}

TEST_F(TrainProgram, SigtermSavesAndEndsWith143) {
  const std::string control = path("control");
  ASSERT_EQ(train(small_digits(control)).code, 0);
  const std::string run_dir = path("run");
  bool is_sent = false;
  const auto end =
      train(small_digits(run_dir, {{"--save_steps", "0"}}), "train.step_end:3+=stall:0.05", [&] {
        const std::string metrics = join_path(run_dir, "metrics.jsonl");
        if (is_sent || !path_exists(metrics) || read_file(metrics).empty()) return 0;
        is_sent = true;
        return SIGTERM;
      });
  EXPECT_EQ(end.code, 143) << end.output;
  EXPECT_EQ(result_of(run_dir).status, "stopped");
  EXPECT_EQ(result_of(run_dir).exit_code, 143);
  ASSERT_EQ(train(resumed(small_digits(run_dir))).code, 0);
  EXPECT_EQ(result_of(run_dir).state_digest, result_of(control).state_digest);
}

TEST_F(TrainProgram, ResumesIntoAnotherFolderAndLeavesTheOldOne) {
  ASSERT_EQ(train(small_digits("old")).code, 0);
  const std::string digest = result_of(path("old")).state_digest;
  ASSERT_EQ(train({"--resume_from_checkpoint", "old/checkpoint-4", "--output_dir", "new"}).code, 0);
  EXPECT_EQ(result_of(path("new")).state_digest, digest);
  EXPECT_EQ(steps_of(path("new")), one_to(12));
  EXPECT_EQ(steps_of(path("old")), one_to(12));
  EXPECT_FALSE(path_exists(path("old/abandoned-1")));
}

TEST_F(TrainProgram, AKillWhileContinuingElsewhereLosesNothing) {
  ASSERT_EQ(train(small_digits("old")).code, 0);
  const std::string digest = result_of(path("old")).state_digest;
  int number = 0;
  for (const char* fault :
       {"config.write=kill", "checkpoint.state.write=kill", "checkpoint.rename=kill",
        "checkpoint.latest.rename=kill", "environment.write=kill"}) {
    const std::string run_dir = path(cat("new-", ++number));
    const Words words{"--resume_from_checkpoint", "old/checkpoint-8", "--output_dir", run_dir};
    EXPECT_EQ(train(words, fault).code, 128 + SIGKILL) << fault;
    // Either the new folder goes on by itself, or it says that it cannot and is replaced on
    // request.
    auto end = train({"--resume_from_checkpoint", "auto", "--output_dir", run_dir});
    if (end.code == 4) {
      EXPECT_THAT(end.output, HasSubstr("Fix:")) << fault;
      Words again = words;
      again.push_back("--overwrite_output_dir");
      end = train(again);
    }
    ASSERT_EQ(end.code, 0) << fault << "\n" << end.output;
    EXPECT_EQ(result_of(run_dir).state_digest, digest) << fault;
    EXPECT_EQ(steps_of(run_dir), one_to(12)) << fault;
  }
}

TEST_F(TrainProgram, AKillWhileLaterLinesArePutAsideLosesNothing) {
  ASSERT_EQ(train(small_digits("control")).code, 0);
  int number = 0;
  for (const char* fault :
       {"config.rename:1=kill", "checkpoint.latest.rename:1=kill", "checkpoint.rotate:1=kill",
        "checkpoint.rotate:2=kill", "config.rename:3=kill", "config.rename:4=kill"}) {
    const std::string run_dir = path(cat("run-", ++number));
    std::filesystem::copy(path("control"), run_dir, std::filesystem::copy_options::recursive);
    const Words words{"--resume_from_checkpoint", join_path(run_dir, "checkpoint-4")};
    EXPECT_EQ(train(words, fault).code, 128 + SIGKILL) << fault;
    const auto end = train(resumed(small_digits(run_dir)));
    ASSERT_EQ(end.code, 0) << fault << "\n" << end.output;
    EXPECT_EQ(steps_of(run_dir), one_to(12)) << fault;
    EXPECT_EQ(result_of(run_dir).state_digest, result_of(path("control")).state_digest) << fault;
  }
}

TEST_F(TrainProgram, ASecondSignalEndsAtOnce) {
  int sent = 0;
  const auto end = train(small_digits("run"), "checkpoint.begin:1=stall:20", [&] {
    const std::string metrics = path("run/metrics.jsonl");
    if (!path_exists(metrics) || split(read_file(metrics), '\n').size() < 5) return 0;
    // Again and again: two signals that come before the process runs are one.
    return ++sent % 100 == 1 ? SIGTERM : 0;
  });
  EXPECT_EQ(end.code, 143) << end.output;
  EXPECT_FALSE(path_exists(path("run/checkpoint-4")));
}

TEST_F(TrainProgram, PlantedDefectsOfAResumeShowInTheDigest) {
  ASSERT_EQ(train(small_text(path("control"))).code, 0);
  int number = 0;
  for (const char* defect :
       {"defect.skip_rng_restore", "defect.skip_optimizer_restore", "defect.step_off_by_one",
        "defect.wrong_lr_after_resume", "defect.scale_gradient:5", "defect.skip_sample:9",
        "defect.repeat_sample:9"}) {
    const std::string run_dir = path(cat("run-", ++number));
    EXPECT_EQ(train(small_text(run_dir), "train.backward:13=kill").code, 128 + SIGKILL);
    ASSERT_EQ(train(resumed(small_text(run_dir)), cat(defect, "=on")).code, 0) << defect;
    EXPECT_NE(result_of(run_dir).state_digest, result_of(path("control")).state_digest) << defect;
    EXPECT_FALSE(checkpoints::compare_runs(path("control"), run_dir).is_bit_equal()) << defect;
  }
}

TEST_F(TrainProgram, ResumesInAFolderThatWasMovedAndHasAnOddName) {
  ASSERT_EQ(train(small_digits("run", {{"--max_steps", "6"}})).code, 0);
  const std::string odd = path(
      "Gr\xc3\xb6\xc3\x9f"
      "e \xe6\xb8\xac\xe8\xa9\xa6 'q\" \n x");
  std::filesystem::rename(path("run"), odd);
  const auto end =
      train({"--resume_from_checkpoint", "auto", "--output_dir", odd, "--max_steps", "12"});
  ASSERT_EQ(end.code, 0) << end.output;
  EXPECT_EQ(steps_of(odd), one_to(12));
}

TEST_F(TrainProgram, FallsBackFromADamagedCheckpointAndNamesIt) {
  ASSERT_EQ(train(small_digits("run", {{"--max_steps", "8"}})).code, 0);
  std::filesystem::resize_file(path("run/checkpoint-8/model.safetensors"), 100);
  const Words latest{
      "--resume_from_checkpoint", "latest", "--output_dir", "run", "--max_steps", "12"};
  const auto refused = train(latest);
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.output, AllOf(HasSubstr("model.safetensors"), HasSubstr("checkpoint-4")));
  const auto end =
      train({"--resume_from_checkpoint", "auto", "--output_dir", "run", "--max_steps", "12"});
  ASSERT_EQ(end.code, 0) << end.output;
  EXPECT_THAT(end.output, HasSubstr("checkpoint-8"));
  ASSERT_EQ(train(small_digits("control")).code, 0);
  EXPECT_EQ(result_of(path("run")).state_digest, result_of(path("control")).state_digest);
}

TEST_F(TrainProgram, ALongerRunIsTheSameRunForDiff) {
  ASSERT_EQ(train(small_digits("short", {{"--max_steps", "8"}})).code, 0);
  ASSERT_EQ(
      train({"--resume_from_checkpoint", "auto", "--output_dir", "short", "--max_steps", "12"})
          .code,
      0);
  ASSERT_EQ(train(small_digits("whole")).code, 0);
  expect_same_run(path("whole"), path("short"));
}

TEST_F(TrainProgram, ClosedStandardStreamsDoNotLandInItsFiles) {
  const auto end = support::run_program(
      {.command = {"/bin/bash", "-c", "exec \"$0\" \"$@\" <&- >&- 2>&-", ASSAY_TRAIN_PROGRAM,
                   "train", "--max_steps", "12", "--batch_size", "4", "--max_train_samples", "30",
                   "--max_eval_samples", "20", "--output_dir", "run"},
       .working_directory = folder_.path()});
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(steps_of(path("run")), one_to(12));
}

TEST_F(TrainProgram, AStoredConfigurationStartsARunOfItsOwn) {
  ASSERT_EQ(train(small_digits("run", {{"--max_steps", "8"}})).code, 0);
  ASSERT_EQ(train({"--resume_from_checkpoint", "run/checkpoint-4", "--max_steps", "9"}).code, 0);
  ASSERT_EQ(train({"run/config.json", "--output_dir", "again"}).code, 0);
  EXPECT_EQ(result_of(path("again")).state_digest, result_of(path("run")).state_digest);
  EXPECT_EQ(steps_of(path("again")), one_to(9));
}

TEST_F(TrainProgram, ASecondRunOnTheFolderIsRefused) {
  std::string second_output;
  int second_code = 0;
  const auto end = train(small_digits("run"), "train.step_end:2=stall:1", [&] {
    const std::string metrics = path("run/metrics.jsonl");
    if (second_code != 0 || !path_exists(metrics) || read_file(metrics).empty()) return 0;
    const auto second = train(resumed(small_digits("run")));
    second_code = second.code;
    second_output = second.output;
    return 0;
  });
  EXPECT_EQ(end.code, 0) << end.output;
  EXPECT_EQ(second_code, 4);
  EXPECT_THAT(second_output, AllOf(HasSubstr("in use by"), HasSubstr("--output_dir")));
}

TEST_F(TrainProgram, ADiskFullInASaveKeepsTheOlderCheckpoint) {
  const auto end = train(small_digits("run"), "checkpoint.optimizer.fsync:2=errno:ENOSPC");
  EXPECT_EQ(end.code, 4) << end.output;
  EXPECT_THAT(end.output, HasSubstr("o space left"));
  const auto entries = checkpoints::list_checkpoints(path("run"));
  ASSERT_FALSE(entries.empty());
  EXPECT_TRUE(checkpoints::verify_checkpoint(entries.back().path).empty());
  EXPECT_EQ(result_of(path("run")).exit_code, 4);
  ASSERT_EQ(train(resumed(small_digits("run"))).code, 0);
  ASSERT_EQ(train(small_digits("control")).code, 0);
  EXPECT_EQ(result_of(path("run")).state_digest, result_of(path("control")).state_digest);
}

TEST_F(TrainProgram, ADiskFullInALogStopsWithFour) {
  const auto end = train(small_digits("run"), "metrics.write:6=errno:ENOSPC");
  EXPECT_EQ(end.code, 4) << end.output;
  EXPECT_THAT(end.output,
              AllOf(HasSubstr("metrics.jsonl"), HasSubstr("o space left"), HasSubstr("Fix:")));
  ASSERT_EQ(train(resumed(small_digits("run"))).code, 0);
  ASSERT_EQ(train(small_digits("control")).code, 0);
  expect_same_run(path("control"), path("run"));
}

TEST_F(TrainProgram, ANanLossStopsWithSevenAndAValidLog) {
  const auto end = train(small_digits("run"), "defect.nan_loss:6=on");
  EXPECT_EQ(end.code, 7) << end.output;
  EXPECT_THAT(end.output, AllOf(HasSubstr("step 6"), HasSubstr("nan"), HasSubstr("conv1.weight")));
  const auto file = metrics::read_metrics(path("run/metrics.jsonl"));
  EXPECT_EQ(file.steps.back().step, 6);
  EXPECT_FALSE(std::isfinite(file.steps.back().loss));
  EXPECT_EQ(result_of(path("run")).status, "diverged");
}

TEST_F(TrainProgram, UsesEverySampleOfAnEpochOnce) {
  ASSERT_EQ(train(small_digits("run", {{"--max_steps", "8"}})).code,
            0);  // 30 samples in windows of 4
  std::vector<int64_t> ids;
  for (const std::string& line : split(trimmed(read_file(path("run/ids-rank0.jsonl"))), '\n')) {
    const nlohmann::json json = nlohmann::json::parse(line);
    for (const auto& id : json["ids"]) ids.push_back(id.get<int64_t>());
  }
  std::sort(ids.begin(), ids.end());
  std::vector<int64_t> expected;
  for (int64_t id = 0; id < 30; ++id) expected.push_back(id);
  EXPECT_EQ(ids, expected);
}

TEST_F(TrainProgram, RefusalsHaveTheContractsCodes) {
  EXPECT_EQ(train({"--max_steps", "0"}).code, 2);
  EXPECT_EQ(train({"--learning_rtae", "1"}).code, 2);
  EXPECT_EQ(train({"--dataset", "mnist", "--data_dir", "nowhere", "--max_steps", "1"}).code, 3);
  EXPECT_EQ(train({"--resume_from_checkpoint", "nowhere/checkpoint-1"}).code, 4);
  EXPECT_EQ(train({"--resume_from_checkpoint", "latest", "--output_dir", "nowhere"}).code, 4);
  const auto world =
      support::run_program({.command = {ASSAY_TRAIN_PROGRAM, "train", "--max_steps", "1"},
                            .environment = {{"RANK", "0"}, {"WORLD_SIZE", "abc"}},
                            .working_directory = folder_.path()});
  EXPECT_EQ(world.code, 5);
  EXPECT_THAT(world.output, HasSubstr("\"abc\""));
  EXPECT_EQ(list_directory(folder_.path()), Words{});
}

TEST_F(TrainProgram, NothingIsWrittenOutsideTheRunFolder) {
  ASSERT_EQ(train(small_digits("run")).code, 0);
  EXPECT_EQ(list_directory(folder_.path()), Words{"run"});
}

}  // namespace
}  // namespace assay
