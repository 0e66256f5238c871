#include "base/fault_points.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FaultPoints : public testing::Test {
 protected:
  void TearDown() override { disarm_faults(); }
};

std::string refusal_of(std::string_view specification) {
  try {
    arm_faults(specification);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST_F(FaultPoints, DoNothingWhenUnarmed) {
  EXPECT_FALSE(are_faults_armed());
  EXPECT_EQ(fault_point("checkpoint.rename").error_number, 0);
  EXPECT_FALSE(is_fault_due("defect.nan_loss"));
  EXPECT_THAT(armed_faults(), IsEmpty());
}

TEST_F(FaultPoints, AreSortedAndUnique) {
  const std::span<const std::string_view> points = known_fault_points();
  EXPECT_TRUE(std::is_sorted(points.begin(), points.end()));
  EXPECT_EQ(std::adjacent_find(points.begin(), points.end()), points.end());
  EXPECT_GE(points.size(), 90U);
}

TEST_F(FaultPoints, FireOnTheNamedRankOnly) {
  arm_faults("config.open@2:1+=errno:ENOSPC");
  EXPECT_EQ(fault_point("config.open").error_number, 0);
  set_fault_rank(2);
  EXPECT_EQ(fault_point("config.open").error_number, ENOSPC);
  set_fault_rank(0);
  EXPECT_THAT(refusal_of("config.open@x=kill"), HasSubstr("rank \"x\" is not a number"));
}

TEST_F(FaultPoints, FireAtTheFirstHitOnly) {
  arm_faults("config.open=errno:ENOSPC");
  EXPECT_EQ(fault_point("config.close").error_number, 0);
  EXPECT_EQ(fault_point("config.open").error_number, ENOSPC);
  EXPECT_EQ(fault_point("config.open").error_number, 0);
}

TEST_F(FaultPoints, FireAtTheNamedHit) {
  arm_faults("config.write:3=short");
  std::vector<bool> seen;
  for (int i = 0; i < 5; ++i) seen.push_back(fault_point("config.write").is_short);
  EXPECT_THAT(seen, ElementsAre(false, false, true, false, false));
}

TEST_F(FaultPoints, FireFromTheNamedHitOn) {
  arm_faults("defect.skip_sample:2+=on");
  std::vector<bool> seen;
  for (int i = 0; i < 4; ++i) seen.push_back(is_fault_due("defect.skip_sample"));
  EXPECT_THAT(seen, ElementsAre(false, true, true, true));
}

TEST_F(FaultPoints, AreArmedTogether) {
  arm_faults(" config.open=errno:EIO ; config.write:1=short;config.write:1=errno:EDQUOT;");
  EXPECT_THAT(armed_faults(), ElementsAre("config.open=errno:EIO", "config.write:1=short",
                                          "config.write:1=errno:EDQUOT"));
  const FaultOutcome outcome = fault_point("config.write");
  EXPECT_TRUE(outcome.is_short);
  EXPECT_EQ(outcome.error_number, EDQUOT);
}

TEST_F(FaultPoints, ThrowWithPointAndHit) {
  arm_faults("train.forward:2=throw");
  fault_point("train.forward");
  try {
    fault_point("train.forward");
    FAIL() << "no error";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "injected fault at train.forward, hit 2");
  }
}

TEST_F(FaultPoints, StallForTheGivenTime) {
  arm_faults("train.step_end=stall:0.02");
  const double start = monotonic_seconds();
  fault_point("train.step_end");
  EXPECT_GE(monotonic_seconds() - start, 0.02);
}

TEST_F(FaultPoints, KillWithARealSignal) {
  EXPECT_EXIT(
      {
        arm_faults("train.forward=kill");
        fault_point("train.forward");
      },
      testing::KilledBySignal(SIGKILL), "");
}

TEST_F(FaultPoints, ExitWithTheGivenCode) {
  EXPECT_EXIT(
      {
        arm_faults("train.forward=exit:42");
        fault_point("train.forward");
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(FaultPoints, CountEveryHitOfManyThreads) {
  constexpr int kNumThreads = 4;
  constexpr int kHitsEach = 500;
  arm_faults(cat("config.open:", kNumThreads * kHitsEach, "=errno:EIO"));
  std::atomic<int> num_fired = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kNumThreads; ++i) {
    threads.emplace_back([&] {
      for (int hit = 0; hit < kHitsEach; ++hit) {
        if (fault_point("config.open").error_number == EIO) ++num_fired;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_fired, 1);
  EXPECT_EQ(fault_point("config.open").error_number, 0);
}

TEST_F(FaultPoints, StartCountingAnewWhenArmed) {
  arm_faults("config.open:2=errno:EIO");
  fault_point("config.open");
  arm_faults("config.open:2=errno:EIO");
  EXPECT_EQ(fault_point("config.open").error_number, 0);
  EXPECT_EQ(fault_point("config.open").error_number, EIO);
}

TEST_F(FaultPoints, SuggestTheNearestName) {
  EXPECT_THAT(refusal_of("checkpoint.renam=kill"),
              HasSubstr("did you mean \"checkpoint.rename\"?"));
}

TEST_F(FaultPoints, RefuseWhatIsNoRule) {
  EXPECT_THAT(refusal_of("train.forward"), HasSubstr("\"=action\" is missing"));
  EXPECT_THAT(refusal_of("train.forward=explode"), HasSubstr("unknown action \"explode\""));
  EXPECT_THAT(refusal_of("train.forward:0=kill"), HasSubstr("hit \"0\" is not a count from 1 on"));
  EXPECT_THAT(refusal_of("train.forward:+=kill"), HasSubstr("hit \"\""));
  EXPECT_THAT(refusal_of("train.forward:-1=kill"), HasSubstr("hit \"-1\""));
  EXPECT_THAT(refusal_of("train.forward=exit:256"), HasSubstr("\"256\" is not in 0..255"));
  EXPECT_THAT(refusal_of("train.forward=exit"), HasSubstr("unknown action"));
  EXPECT_THAT(refusal_of("train.forward=stall:-1"), HasSubstr("stall of \"-1\""));
  EXPECT_THAT(refusal_of("train.forward=stall:nan"), HasSubstr("stall of \"nan\""));
  EXPECT_THAT(refusal_of("config.open=errno:ENOSUCH"), HasSubstr("unknown error \"ENOSUCH\""));
  EXPECT_FALSE(are_faults_armed());
}

TEST_F(FaultPoints, RefuseActionsThatTheirPlaceCannotShow) {
  EXPECT_THAT(refusal_of("defect.nan_loss=kill"), HasSubstr("\"on\" only"));
  EXPECT_THAT(refusal_of("train.forward=on"), HasSubstr("for defect.* points only"));
  EXPECT_THAT(refusal_of("train.forward=errno:EIO"), HasSubstr("makes no system call"));
  EXPECT_THAT(refusal_of("config.fsync=short"), HasSubstr("short is for"));
}

TEST_F(FaultPoints, KeepTheArmedRulesWhenARuleIsRefused) {
  arm_faults("config.open=errno:EIO");
  EXPECT_NE(refusal_of("config.write=short;nonsense"), "");
  EXPECT_THAT(armed_faults(), ElementsAre("config.open=errno:EIO"));
}

TEST_F(FaultPoints, AreReadFromTheEnvironment) {
  setenv("ASSAY_FAULTS", "config.open=errno:EIO", 1);
  arm_faults_from_environment();
  EXPECT_THAT(armed_faults(), ElementsAre("config.open=errno:EIO"));
  unsetenv("ASSAY_FAULTS");
  arm_faults_from_environment();
  EXPECT_FALSE(are_faults_armed());
}

TEST_F(FaultPoints, RefuseAPlaceThatIsNotInTheTable) {
  arm_faults("config.open=errno:EIO");
  EXPECT_THROW(fault_point("no.such.place"), InternalError);
}

}  // namespace
}  // namespace assay
