#include "trainer/launch/restart_policy.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::launch {
namespace {

using ::testing::HasSubstr;

RankEnd with_code(int code) {
  RankEnd end;
  end.exit_code = code;
  return end;
}

TEST(RestartPolicy, AllowsTheFirstRestartWithoutProgress) {
  EXPECT_EQ(reason_not_to_restart(with_code(1), {.max_restarts = 1}), "");
}

TEST(RestartPolicy, NeedsProgressForTheNext) {
  RestartState state{.max_restarts = 5, .restarts_done = 1, .highest_step_before = 10};
  for (const int64_t step : {0, 9, 10}) {
    state.highest_step = step;
    EXPECT_THAT(reason_not_to_restart(with_code(1), state), HasSubstr("beyond 10"));
  }
  state.highest_step = 11;
  EXPECT_EQ(reason_not_to_restart(with_code(1), state), "");
}

TEST(RestartPolicy, CountsRestarts) {
  RestartState state{.max_restarts = 2, .restarts_done = 2, .highest_step = 5};
  EXPECT_THAT(reason_not_to_restart(with_code(1), state), HasSubstr("--max-restarts 2"));
  state = {.max_restarts = 0};
  EXPECT_THAT(reason_not_to_restart(with_code(1), state), HasSubstr("--max-restarts 0"));
}

TEST(RestartPolicy, KnowsWhatWouldFailAgain) {
  for (const int code : {2, 3, 4}) {
    EXPECT_THAT(reason_not_to_restart(with_code(code), {.max_restarts = 9}), HasSubstr("again"));
  }
  for (const int code : {1, 5, 7, 137, 143}) {
    EXPECT_EQ(reason_not_to_restart(with_code(code), {.max_restarts = 9}), "") << code;
  }
}

TEST(RestartPolicy, NeedsAllNodes) {
  EXPECT_THAT(reason_not_to_restart(lost_node("node 1"), {.max_restarts = 9}), HasSubstr("gone"));
}

TEST(GracePeriod, CoversTwiceTheLongestSave) {
  EXPECT_EQ(grace_period({}, 0), 30);
  EXPECT_EQ(grace_period({}, 10), 30);
  EXPECT_EQ(grace_period({}, 45), 100);
  EXPECT_EQ(grace_period(5, 45), 5);
}

RankProgress in_phase(RankPhase phase) {
  RankProgress progress;
  progress.phase = phase;
  return progress;
}

TEST(KillTime, IsTheGracePeriodAfterASignal) {
  const StopSituation asked{.told_at = 100, .grace_seconds = 30};
  EXPECT_EQ(kill_time(asked, in_phase(RankPhase::kForward)), 130);
}

TEST(KillTime, IsSoonAfterAFailureUnlessAFileIsBeingWritten) {
  const StopSituation failed{.told_at = 100, .grace_seconds = 30, .is_after_failure = true};
  EXPECT_LE(kill_time(failed, in_phase(RankPhase::kBackward)), 105);
  EXPECT_LE(kill_time(failed, in_phase(RankPhase::kCheckpoint)), 105) << "it only waits";
  RankProgress writing = in_phase(RankPhase::kCheckpoint);
  writing.is_writing = true;
  EXPECT_GE(kill_time(failed, writing), 130);
}

TEST(KillTime, WaitsForASaveUnlessToldHowLong) {
  StopSituation asked{.told_at = 100, .grace_seconds = 30};
  EXPECT_GT(kill_time(asked, in_phase(RankPhase::kCheckpoint)), 100 + 60);
  asked.is_grace_given = true;
  EXPECT_EQ(kill_time(asked, in_phase(RankPhase::kCheckpoint)), 130);
}

}  // namespace
}  // namespace assay::launch
