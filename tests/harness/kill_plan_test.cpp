#include "harness/kill_plan.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::harness {
namespace {

using ::testing::HasSubstr;

TEST(ParseKill, ReadsEveryForm) {
  EXPECT_EQ(parse_kill("random_step").kind, KillKind::kRandomStep);
  EXPECT_EQ(parse_kill("random_wall").kind, KillKind::kRandomWall);
  EXPECT_EQ(parse_kill("sigterm").kind, KillKind::kSigterm);
  const Kill kill = parse_kill("after_resume:checkpoint.rename:2");
  EXPECT_EQ(kill.kind, KillKind::kFaultPoint);
  EXPECT_TRUE(kill.is_after_resume);
  EXPECT_EQ(fault_text(kill), "checkpoint.rename:2=kill");
}

TEST(ParseKill, RefusesAnUnknownPointWithTheNearest) {
  try {
    parse_kill("checkpoint.renam");
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("checkpoint.renam"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"checkpoint.rename\""));
  }
}

TEST(ParseKill, RefusesAHitBelowOne) {
  EXPECT_THROW(parse_kill("checkpoint.rename:0"), ConfigError);
  EXPECT_THROW(parse_kill("checkpoint.rename:x"), ConfigError);
}

TEST(KillClock, IsTheSameForTheSameNamesAndAnotherForOthers) {
  EXPECT_EQ(KillClock(1, "digits", "random_step").step(1, 1000000),
            KillClock(1, "digits", "random_step").step(1, 1000000));
  std::set<int64_t> moments;
  for (const auto* workload : {"digits", "text"}) {
    for (const auto* kill : {"random_step", "sigterm"}) {
      for (const uint64_t seed : {1u, 2u}) {
        moments.insert(KillClock(seed, workload, kill).step(1, 1000000));
      }
    }
  }
  EXPECT_EQ(moments.size(), 8u);
}

TEST(KillClock, StaysWithinItsBounds) {
  KillClock clock(7, "digits", "random_step");
  std::set<int64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    seen.insert(clock.step(3, 7));
    const double fraction = clock.fraction();
    EXPECT_GE(fraction, 0);
    EXPECT_LT(fraction, 1);
  }
  EXPECT_EQ(seen, (std::set<int64_t>{3, 4, 5, 6, 7}));
  EXPECT_EQ(clock.step(5, 5), 5);
}

}  // namespace
}  // namespace assay::harness
