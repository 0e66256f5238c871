// Every fault point of a save x every way to fail, at every hit: the old checkpoint or the new one
// is there and verifies, and nothing is left lying about. For kills the process really dies.
#include <csignal>
#include <functional>
#include <sys/wait.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> save_points() {
  std::vector<std::string> points;
  for (const std::string_view point : known_fault_points()) {
    if (point.starts_with("checkpoint.")) points.emplace_back(point);
  }
  return points;
}

bool can_fail_with_errno(const std::string& point) {
  return point != "checkpoint.begin" && point != "checkpoint.done";  // no system call there
}

// The save that is made to fail: step 20 over step 10, which then rotates out.
void save_new(const std::string& run_dir) {
  const SampleState state(20);
  CommitRequest request = request_for(run_dir, state);
  request.save_total_limit = 1;
  commit_checkpoint(request);
}

// What must hold after any failed save.
void expect_old_or_new(const std::string& run_dir) {
  const ResumeChoice choice = choose_resume("auto", run_dir);
  ASSERT_TRUE(choice.path);
  EXPECT_THAT(choice.skipped, IsEmpty());
  EXPECT_THAT(file_name(*choice.path), AnyOf("checkpoint-10", "checkpoint-20"));
  const ResumeChoice latest = choose_resume("latest", run_dir);
  ASSERT_TRUE(latest.path);
  const int64_t step = open_checkpoint(*choice.path).trainer.step;
  EXPECT_EQ(checkpoint_name(step), file_name(*choice.path));
}

// Calls with k = 1, 2, ... until a save meets no fault; returns how many did.
int64_t count_faults(const std::function<bool(int64_t hit)>& fails_at) {
  int64_t hit = 1;
  while (fails_at(hit)) {
    if (++hit > 100) {
      ADD_FAILURE() << "still failing at hit 100";
      break;
    }
  }
  return hit - 1;
}

// Makes a save fail there and checks what is left; false if the save met no fault.
bool fails_cleanly(const std::string& point, const std::string& action, int64_t hit) {
  const std::string rule = cat(point, ":", hit, "=", action);
  SCOPED_TRACE(rule);
  const TemporaryFolder run;
  commit_sample(run.path(), 10);
  std::string message;
  try {
    const ArmedFaults armed(rule);
    save_new(run.path());
    return false;
  } catch (const Error& error) {
    message = error.what();
  }
  if (action != "throw") {
    EXPECT_THAT(message, HasSubstr("checkpoint-20"));
    EXPECT_THAT(message, HasSubstr("Fix: "));
  }
  EXPECT_THAT(litter_in(run.path()), IsEmpty());
  expect_old_or_new(run.path());
  save_new(run.path());  // what failed once may be tried again
  EXPECT_EQ(choose_resume("latest", run.path()).path, join_path(run.path(), "checkpoint-20"));
  return !testing::Test::HasFailure();
}

TEST(CheckpointFaults, AThrowAtEveryHitOfEveryPointLeavesOldOrNew) {
  for (const std::string& point : save_points()) {
    const int64_t faults =
        count_faults([&](int64_t hit) { return fails_cleanly(point, "throw", hit); });
    EXPECT_GE(faults, 1) << point << " was never reached";
  }
}

TEST(CheckpointFaults, AFullDiskAtEveryHitOfEveryPointLeavesOldOrNew) {
  for (const std::string& point : save_points()) {
    if (!can_fail_with_errno(point)) continue;
    const int64_t faults =
        count_faults([&](int64_t hit) { return fails_cleanly(point, "errno:ENOSPC", hit); });
    EXPECT_GE(faults, 1) << point << " was never reached";
  }
}

TEST(CheckpointFaults, ABrokenDiskAtEveryPointLeavesOldOrNew) {
  for (const std::string& point : save_points()) {
    if (!can_fail_with_errno(point)) continue;
    EXPECT_TRUE(fails_cleanly(point, "errno:EIO", 1)) << point;
    EXPECT_TRUE(fails_cleanly(point, "errno:EROFS", 1)) << point;
  }
}

TEST(CheckpointFaults, AFullDiskIsNamedWithBothNumbers) {
  const TemporaryFolder run;
  commit_sample(run.path(), 10);
  const ArmedFaults armed("checkpoint.optimizer.write:1+=errno:ENOSPC");
  const std::string message = thrown_message<CheckpointError>([&] { save_new(run.path()); });
  EXPECT_THAT(message, HasSubstr("no space left on device"));
  EXPECT_THAT(message, testing::ContainsRegex("needs [0-9.]+ .?B, [0-9.]+ .?B free"));
  EXPECT_THAT(message, HasSubstr("checkpoint-10 stands"));
}

TEST(CheckpointFaults, ShortWritesAreCompleted) {
  for (const std::string& point : save_points()) {
    if (!point.ends_with(".write")) continue;
    const TemporaryFolder run;
    const ArmedFaults armed(cat(point, ":1+=short"));
    const std::string path = commit_sample(run.path(), 10);
    EXPECT_THAT(verify_checkpoint(path), IsEmpty()) << point;
  }
}

TEST(CheckpointFaults, FailureBeforeTheRenameLeavesOnlyTheOldOne) {
  for (const std::string point : {"checkpoint.model.open", "checkpoint.manifest.fsync",
                                  "checkpoint.sync_dir", "checkpoint.rename"}) {
    const TemporaryFolder run;
    commit_sample(run.path(), 10);
    const ArmedFaults armed(cat(point, "=errno:EIO"));
    EXPECT_THROW(save_new(run.path()), CheckpointError);
    EXPECT_FALSE(path_exists(join_path(run.path(), "checkpoint-20"))) << point;
    EXPECT_EQ(read_file(join_path(run.path(), kLatestFile)), "checkpoint-10\n");
  }
}

// True if the child was killed by its fault; false if its save came to the end.
bool is_killed_at(const std::string& run_dir, const std::string& rule) {
  const pid_t child = ::fork();
  if (child == 0) {
    arm_faults(rule);
    save_new(run_dir);
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) {
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    return true;
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
  return false;
}

TEST(CheckpointFaults, ARealKillAtEveryPointLeavesOldOrNew) {
  for (const std::string& point : save_points()) {
    const int64_t kills = count_faults([&](int64_t hit) {
      SCOPED_TRACE(cat(point, ":", hit, "=kill"));
      const TemporaryFolder run;
      commit_sample(run.path(), 10);
      const bool is_killed = is_killed_at(run.path(), cat(point, ":", hit, "=kill"));
      expect_old_or_new(run.path());
      remove_stale_temporaries(run.path());
      EXPECT_THAT(litter_in(run.path()), IsEmpty());
      if (!is_killed) return false;
      save_new(run.path());
      EXPECT_EQ(choose_resume("latest", run.path()).path, join_path(run.path(), "checkpoint-20"));
      return !testing::Test::HasFailure();
    });
    EXPECT_GE(kills, 1) << point << " was never reached";
  }
}

}  // namespace
}  // namespace assay::checkpoints
