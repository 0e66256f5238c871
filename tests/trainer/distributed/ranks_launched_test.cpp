// The trainer's ranks under `assay launch`: signals and long saves, sockets, what is left behind.
#include <algorithm>
#include <csignal>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "checkpoints/reader.h"
#include "tests/support/processes.h"
#include "tests/support/program.h"
#include "trainer/metrics/step_record.h"
#include "trainer/run/run_folder.h"

namespace assay {
namespace {

using support::ProgramEnd;
using testing::HasSubstr;
using Words = std::vector<std::string>;

class LaunchedRanks : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return join_path(folder_.path(), name); }
  static Words training(const std::string& run_dir, const Words& more) {
    Words words = {"train",
                   "--model=gpt_tiny",
                   "model.n_layer=1",
                   "model.n_embd=32",
                   "model.n_head=2",
                   "model.n_positions=16",
                   "--batch_size=2",
                   "--num_threads=1",
                   "--num_workers=4",
                   "--save_steps=0",
                   "--max_eval_samples=8",
                   "--no-tensorboard",
                   "--ddp_timeout=4",
                   cat("--output_dir=", run_dir)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  ProgramEnd launch(const Words& options, const Words& words, const std::string& faults,
                    const std::function<int()>& watch) const {
    Words command = {ASSAY_PROGRAM, "launch"};
    command.insert(command.end(), options.begin(), options.end());
    command.push_back("--");
    command.insert(command.end(), words.begin(), words.end());
    return support::run_program({.command = command,
                                 .environment = {{"ASSAY_FAULTS", faults}},
                                 .working_directory = folder_.path(),
                                 .watch = watch});
  }
  bool has_steps(const std::string& run_dir) const {
    const std::string metrics = path(cat(run_dir, "/metrics.jsonl"));
    return path_exists(metrics) && read_file(metrics).size() > 2000;
  }

  // The launcher starts its ranks, so the highest id is a rank's.
  static pid_t youngest_with(const std::string& word) {
    const auto pids = support::processes_with(word, 0);
    return static_cast<pid_t>(*std::max_element(pids.begin(), pids.end()));
  }

  TemporaryFolder folder_;
};

// The save takes longer than ranks wait for one another in a step, and longer than the 3 s that
// ranks get to end after a failure.
TEST_F(LaunchedRanks, AgreeOnTheStepThenSaveHoweverLongItTakes) {
  bool is_sent = false;
  const ProgramEnd end = launch({"--nproc-per-node=2"}, training("run", {"--max_steps=100000"}),
                                "checkpoint.model.fsync=stall:7", [&] {
                                  if (is_sent || !has_steps("run")) return 0;
                                  is_sent = true;
                                  return SIGTERM;
                                });
  EXPECT_EQ(end.code, 128 + SIGTERM) << end.output;
  const auto result = run::read_result(path("run"));
  ASSERT_TRUE(result) << end.output;
  EXPECT_EQ(result->status, "stopped");
  EXPECT_EQ(result->exit_code, 128 + SIGTERM);
  const auto steps = metrics::read_metrics(path("run/metrics.jsonl")).steps;
  EXPECT_EQ(steps.back().step, result->final_step);
  EXPECT_EQ(checkpoints::open_checkpoint(path(cat("run/checkpoint-", result->final_step)))
                .manifest.state_digest,
            result->state_digest);
}

// As a terminal or a batch system does: launcher, ranks and loader threads all get the signal.
TEST_F(LaunchedRanks, SaveOnceWhenTheWholeProcessGroupIsSignalled) {
  bool is_sent = false;
  const std::string run_dir = path("run");
  const ProgramEnd end =
      launch({"--nproc-per-node=2"}, training(run_dir, {"--max_steps=100000"}), "", [&] {
        if (is_sent || !has_steps("run")) return 0;
        is_sent = true;
        for (const int64_t pid : support::processes_with("--output_dir=" + run_dir, 0)) {
          kill(static_cast<pid_t>(pid), SIGTERM);
        }
        return 0;
      });
  EXPECT_EQ(end.code, 128 + SIGTERM) << end.output;
  const auto result = run::read_result(path("run"));
  ASSERT_TRUE(result) << end.output;
  EXPECT_EQ(result->status, "stopped") << end.output;
  EXPECT_TRUE(path_exists(path(cat("run/checkpoint-", result->final_step))));
}

TEST_F(LaunchedRanks, ListenOnLoopbackOnly) {
  std::vector<std::string> addresses;
  const std::string run_dir = path("run");
  const ProgramEnd end =
      launch({"--nproc-per-node=2"}, training(run_dir, {"--max_steps=100000"}), "", [&] {
        if (!addresses.empty() || !has_steps("run")) return 0;
        addresses = support::listening_addresses(cat("--output_dir=", run_dir));
        return SIGTERM;
      });
  EXPECT_EQ(end.code, 128 + SIGTERM) << end.output;
  ASSERT_GE(addresses.size(), 2U);  // the store's, and Gloo's of each rank
  for (const std::string& address : addresses) {
    const bool is_loopback = address.starts_with("0100007F:") ||                        // 127.0.0.1
                             address.starts_with("00000000000000000000000001000000:");  // ::1
    EXPECT_TRUE(is_loopback) << address;
  }
}

// In the role of each of three ranks: the samples, buckets and optimizer share of the real ones.
TEST_F(LaunchedRanks, TakeTheSamplesThatADryRunInTheirRoleTakes) {
  const ProgramEnd end = launch({"--nproc-per-node=3"},
                                training("run", {"--max_steps=5", "--log_sample_ids", "--zero1",
                                                 "ddp.bucket_mb=0.02", "ddp.first_bucket_mb=0.02"}),
                                "", {});
  ASSERT_EQ(end.code, 0) << end.output;
  int64_t optimizer_bytes = 0;
  for (int rank = 0; rank < 3; ++rank) {
    Words words = training("unused", {"--zero1", "ddp.bucket_mb=0.02", "ddp.first_bucket_mb=0.02",
                                      "--json", "--world=3", cat("--dry-run-rank=", rank)});
    words.front() = "estimate";
    words.insert(words.begin(), ASSAY_TRAIN_PROGRAM);
    const ProgramEnd dry =
        support::run_program({.command = words, .working_directory = folder_.path()});
    ASSERT_EQ(dry.code, 0) << dry.output;
    const auto json = nlohmann::json::parse(dry.output);
    std::vector<std::vector<int64_t>> ids;
    for (const std::string& line :
         split(read_file(path(cat("run/ids-rank", rank, ".jsonl"))), '\n')) {
      if (!line.empty()) ids.push_back(nlohmann::json::parse(line).at("ids"));
    }
    EXPECT_EQ(json.at("sample_ids").get<std::vector<std::vector<int64_t>>>(), ids);
    EXPECT_GT(json.at("bucket_bytes").size(), 1U);
    optimizer_bytes += json.at("optimizer_bytes").get<int64_t>();
    // Every parameter is reduced once, in float32.
    int64_t reduced = 0;
    for (const auto& bytes : json.at("bucket_bytes")) reduced += bytes.get<int64_t>();
    EXPECT_EQ(reduced, json.at("parameter_bytes").get<int64_t>());
  }
  EXPECT_FALSE(path_exists(path("unused")));
  // AdamW keeps two numbers a weight, somewhere.
  EXPECT_GE(optimizer_bytes, 2 * 21472 * 4);
  EXPECT_LT(optimizer_bytes, 3 * 21472 * 4);
}

TEST_F(LaunchedRanks, LeaveNothingWhenLauncherOrRankIsKilled) {
  for (const bool is_launcher : {true, false}) {
    const std::string run_dir = path(is_launcher ? "launcher" : "rank");
    bool is_sent = false;
    const ProgramEnd end =
        launch({"--nproc-per-node=2"}, training(run_dir, {"--max_steps=100000"}), "", [&] {
          if (is_sent || !has_steps(is_launcher ? "launcher" : "rank")) return 0;
          is_sent = true;
          if (is_launcher) return SIGKILL;
          kill(youngest_with(run_dir), SIGKILL);
          return 0;
        });
    EXPECT_EQ(end.code, 128 + SIGKILL) << end.output;
    EXPECT_TRUE(support::processes_with(run_dir, 10).empty());
  }
}

}  // namespace
}  // namespace assay
