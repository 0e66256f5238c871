// Trials with /bin/sh as the program: ends, kills, limits, and that nothing is left behind.
#include "harness/trial.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "harness/child_process.h"

namespace assay::harness {
namespace {

using ::testing::HasSubstr;

class TrialOfShell : public ::testing::Test {
 protected:
  TrialRequest request(const std::string& script) {
    TrialRequest made;
    made.name = "shell";
    made.folder = join_path(folder_.path(), "trial");
    made.command = {"/bin/sh", "-c", script};
    made.stall_limit_seconds = 20;
    return made;
  }

  std::string log() { return read_file(join_path(join_path(folder_.path(), "trial"), "log.txt")); }

  TemporaryFolder folder_;
  Interrupt interrupt_;
};

bool is_gone(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

// The kernel may need a moment to bury an orphan.
bool is_gone_soon(pid_t pid) {
  const double end = monotonic_seconds() + 5;
  while (monotonic_seconds() < end) {
    if (is_gone(pid)) return true;
    std::this_thread::yield();
  }
  return false;
}

TEST_F(TrialOfShell, GivesExitCodeAndCapturesBothStreams) {
  const TrialResult result =
      run_trial(request("echo to-stdout; echo to-stderr >&2; exit 7"), interrupt_);
  EXPECT_TRUE(result.is_exit(7));
  EXPECT_FALSE(result.signal_number.has_value());
  EXPECT_EQ(describe_end(result), "exit code 7");
  EXPECT_THAT(log(), HasSubstr("to-stdout"));
  EXPECT_THAT(log(), HasSubstr("to-stderr"));
}

TEST_F(TrialOfShell, TellsAForeignSignalFromItsOwn) {
  const TrialResult result = run_trial(request("kill -9 $$"), interrupt_);
  EXPECT_EQ(result.signal_number, SIGKILL);
  EXPECT_FALSE(result.is_kill_sent);
  EXPECT_THAT(describe_end(result), HasSubstr("not sent by the harness"));
}

TEST_F(TrialOfShell, KillsAfterAMoment) {
  TrialRequest made = request("exec sleep 30");
  made.kill_after_seconds = 0.02;
  const TrialResult result = run_trial(made, interrupt_);
  EXPECT_EQ(result.signal_number, SIGKILL);
  EXPECT_TRUE(result.is_kill_sent);
  EXPECT_LT(result.wall_seconds, 20);
}

TEST_F(TrialOfShell, KillsOnceAStepIsFinished) {
  // Lines that are there when the trial begins to look count as an earlier run's.
  TrialRequest made = request(
      "sleep 0.5; i=0; while :; do i=$((i+1)); echo \"{\\\"step\\\":$i}\" >> metrics.jsonl; "
      "[ $i -gt 3 ] && exec sleep 30; done");
  made.run_dir = made.folder;
  made.kill_at_step = 3;
  made.kill_signal = SIGTERM;
  const TrialResult result = run_trial(made, interrupt_);
  EXPECT_EQ(result.signal_number, SIGTERM);
  EXPECT_GE(result.last_step, 3);
  ASSERT_TRUE(result.first_step_seconds.has_value());
  EXPECT_GE(*result.first_step_seconds, 0);
}

TEST_F(TrialOfShell, EndsAtItsLimitWithEverythingItStarted) {
  TrialRequest made = request("sleep 300 & echo $! > child.pid; wait");
  made.stall_limit_seconds = 0.3;
  const TrialResult result = run_trial(made, interrupt_);
  EXPECT_TRUE(result.is_timed_out);
  EXPECT_THAT(describe_end(result), HasSubstr("no end after"));
  const std::string text = read_file(join_path(made.folder, "child.pid"));
  EXPECT_TRUE(is_gone_soon(static_cast<pid_t>(*parse_int64(trimmed(text)))));
}

TEST_F(TrialOfShell, ASlowProgramThatGoesOnIsNoHang) {
  TrialRequest made = request(
      "for i in 1 2 3 4 5 6; do echo \"{\\\"step\\\":$i}\" >> metrics.jsonl; sleep 0.1; done");
  made.run_dir = made.folder;
  made.stall_limit_seconds = 0.4;
  const TrialResult result = run_trial(made, interrupt_);
  EXPECT_TRUE(result.is_exit(0)) << describe_end(result);
  EXPECT_GT(result.wall_seconds, 0.4);
}

TEST_F(TrialOfShell, EndsAtTheLimitOfTheWholeTrial) {
  TrialRequest made = request("exec sleep 300");
  made.limit_seconds = 0.05;
  EXPECT_TRUE(run_trial(made, interrupt_).is_timed_out);
}

TEST_F(TrialOfShell, BuriesWhatAFinishedProgramLeftRunning) {
  const TrialRequest made = request("sleep 300 & echo $! > child.pid; exit 0");
  EXPECT_TRUE(run_trial(made, interrupt_).is_exit(0));
  const std::string text = read_file(join_path(made.folder, "child.pid"));
  EXPECT_TRUE(is_gone_soon(static_cast<pid_t>(*parse_int64(trimmed(text)))));
}

TEST_F(TrialOfShell, MeasuresCpuTimeAndMemory) {
  const TrialResult result =
      run_trial(request("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"), interrupt_);
  EXPECT_GT(result.cpu_seconds, 0);
  EXPECT_GT(result.peak_rss_bytes, 100000u);
  EXPECT_GT(result.wall_seconds, 0);
}

TEST_F(TrialOfShell, TakesResourceSamples) {
  TrialRequest made = request("exec sleep 0.1");
  made.sample_seconds = 0.01;
  const TrialResult result = run_trial(made, interrupt_);
  ASSERT_FALSE(result.samples.empty());
  uint64_t greatest = 0;  // the first sample may come before exec, the last after the end
  for (const ResourceSample& sample : result.samples) {
    greatest = std::max(greatest, sample.rss_bytes);
  }
  EXPECT_GT(greatest, 0u);
  EXPECT_TRUE(path_exists(join_path(made.folder, "resources.jsonl")));
}

TEST_F(TrialOfShell, HidesRankAndFaultVariablesOfItsSurroundings) {
  setenv("RANK", "3", 1);
  setenv("ASSAY_FAULTS", "checkpoint.rename=kill", 1);
  setenv("TORCHELASTIC_RESTART_COUNT", "1", 1);
  TrialRequest made = request("env");
  made.environment["ASSAY_FAULTS"] = "train.forward=kill";
  run_trial(made, interrupt_);
  for (const char* name : {"RANK", "ASSAY_FAULTS", "TORCHELASTIC_RESTART_COUNT"}) unsetenv(name);
  EXPECT_THAT(log(), Not(HasSubstr("\nRANK=")));
  EXPECT_THAT(log(), Not(HasSubstr("TORCHELASTIC_RESTART_COUNT")));
  EXPECT_THAT(log(), Not(HasSubstr("checkpoint.rename=kill")));
  EXPECT_THAT(log(), HasSubstr("ASSAY_FAULTS=train.forward=kill"));
}

TEST_F(TrialOfShell, WritesItsRecordBesideTheLog) {
  const TrialRequest made = request("exit 4");
  run_trial(made, interrupt_);
  const std::string record = read_file(join_path(made.folder, "trial.json"));
  EXPECT_THAT(record, HasSubstr("\"exit_code\": 4"));
  EXPECT_THAT(record, HasSubstr("/bin/sh"));
}

TEST_F(TrialOfShell, NamesAProgramThatCannotBeExecuted) {
  TrialRequest made = request("");
  made.command = {"/nonexistent/assay-train", "train"};
  try {
    run_trial(made, interrupt_);
    FAIL() << "nothing was thrown";
  } catch (const CouldNotRunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/assay-train"));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
}

TEST_F(TrialOfShell, StopsOnAnInterruptAndKillsTheChild) {
  TrialRequest made = request("echo $$ > own.pid; exec sleep 300");
  std::thread sender([&] {
    const std::string file = join_path(made.folder, "own.pid");
    while (!path_exists(file) || file_bytes(file) == 0) std::this_thread::yield();
    kill(getpid(), SIGTERM);  // held back by interrupt_, so it does not end the test
  });
  EXPECT_THROW(run_trial(made, interrupt_), InterruptedError);
  sender.join();
  const std::string text = read_file(join_path(made.folder, "own.pid"));
  EXPECT_TRUE(is_gone_soon(static_cast<pid_t>(*parse_int64(trimmed(text)))));
}

TEST(ChildProcess, KillsItsGroupWhenDestroyed) {
  TemporaryFolder folder;
  pid_t pid = 0;
  {
    ChildRequest request;
    request.command = {"/bin/sh", "-c", "exec sleep 300"};
    request.log_file = join_path(folder.path(), "log.txt");
    const ChildProcess child(request);
    pid = child.pid();
    EXPECT_FALSE(is_gone(pid));
  }
  EXPECT_TRUE(is_gone(pid));
}

TEST(FindTrainer, RefusesAVariableThatNamesNoProgram) {
  setenv("ASSAY_TRAIN", "/nonexistent/trainer", 1);
  EXPECT_THROW(find_trainer(), CouldNotRunError);
  setenv("ASSAY_TRAIN", "/bin/sh", 1);
  EXPECT_TRUE(find_trainer().starts_with('/'));
  unsetenv("ASSAY_TRAIN");
}

}  // namespace
}  // namespace assay::harness
