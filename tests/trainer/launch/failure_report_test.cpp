#include "trainer/launch/failure_report.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace assay::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RankEnd ended(int64_t rank, int code, double at) {
  RankEnd end;
  end.rank = rank;
  end.exit_code = code;
  end.ended_at = at;
  return end;
}

RankEnd killed(int64_t rank, int signal_number, double at) {
  RankEnd end = ended(rank, 0, at);
  end.signal_number = signal_number;
  return end;
}

RankEnd treated(RankEnd end, RankTreatment treatment) {
  end.treatment = treatment;
  return end;
}

int64_t culprit(const std::vector<RankEnd>& ends, int stop_signal = 0) {
  const RankEnd* cause = root_cause(ends, stop_signal);
  return cause == nullptr ? -1 : cause->rank;
}

TEST(RootCause, IsNobodyWhereAllEndedWell) {
  EXPECT_EQ(culprit({ended(0, 0, 1), ended(1, 0, 2)}), -1);
}

TEST(RootCause, IsTheFirstThatFailed) {
  EXPECT_EQ(culprit({ended(0, 1, 2), ended(1, 3, 1), ended(2, 0, 0)}), 1);
}

TEST(RootCause, IsTheKilledOneAndNotItsPeers) {
  EXPECT_EQ(culprit({ended(0, 5, 1.0), killed(1, SIGKILL, 1.2), ended(2, 5, 1.1)}), 1);
}

TEST(RootCause, IsTheOneWithAReasonOfItsOwnAndNotItsPeers) {
  EXPECT_EQ(culprit({ended(0, 5, 1.0), ended(1, 2, 1.2)}), 1);
}

TEST(RootCause, IsTheFirstOfThoseThatLostTheirPeersIfThereIsNoOther) {
  EXPECT_EQ(culprit({ended(0, 5, 1.1), ended(1, 5, 1.0)}), 1);
}

TEST(RootCause, IsAStoppedRankBeforeItsPeers) {
  RankEnd stopped = ended(2, 0, 0);
  stopped.was_stopped = true;
  EXPECT_EQ(culprit({ended(0, 5, 1.0), stopped}), 2);
  EXPECT_EQ(culprit({ended(0, 1, 1.0), stopped}), 0);
}

TEST(RootCause, IsNotARankThatWasToldToEnd) {
  const RankEnd other = treated(killed(1, SIGTERM, 0.5), RankTreatment::kEnded);
  EXPECT_EQ(culprit({ended(0, 7, 1.0), other}), 0);
}

TEST(RootCause, IsNotARankThatStoppedAsAsked) {
  EXPECT_EQ(culprit({ended(0, 143, 1), killed(1, SIGTERM, 2)}, SIGTERM), -1);
  EXPECT_EQ(culprit({ended(0, 143, 1), ended(1, 4, 2)}, SIGTERM), 1);
  EXPECT_EQ(culprit({ended(0, 143, 1)}, 0), 0) << "nobody asked it";
}

TEST(RootCause, IsNotAPeerOfARankThatASignalToStopCut) {
  EXPECT_EQ(culprit({ended(0, 5, 1), killed(1, SIGTERM, 2)}, SIGTERM), -1);
}

TEST(RootCause, IsALostNodeBeforeThePeersOfItsRanks) {
  RankEnd node = lost_node("node 1");
  node.ended_at = 2;
  const std::vector<RankEnd> ends = {ended(0, 5, 1), node};
  EXPECT_EQ(root_cause(ends, 0)->message, "node 1");
}

TEST(GroupOutcome, IsTheCauseIfThereIsOne) {
  const GroupOutcome outcome =
      outcome_of({ended(0, 5, 2), ended(1, 0, 1)}, 0, killed(1, SIGSEGV, 0));
  EXPECT_EQ(outcome.exit_code, 128 + SIGSEGV);
}

TEST(GroupOutcome, IsTheSignalIfTheRanksStoppedAsAsked) {
  const GroupOutcome outcome =
      outcome_of({ended(0, 0, 1), ended(1, 138, 1)}, SIGUSR1, std::nullopt);
  EXPECT_EQ(outcome.exit_code, 138);
  EXPECT_FALSE(outcome.cause);
}

TEST(GroupOutcome, IsZeroIfTheTargetWasReachedMeanwhile) {
  EXPECT_EQ(outcome_of({ended(0, 0, 1)}, SIGTERM, std::nullopt).exit_code, 0);
}

TEST(GroupOutcome, IsAFailureOfARankThatWasKilledAfterItsGracePeriod) {
  const GroupOutcome outcome =
      outcome_of({treated(killed(0, SIGKILL, 1), RankTreatment::kOverdue)}, SIGTERM, std::nullopt);
  EXPECT_EQ(outcome.exit_code, 137);
  EXPECT_THAT(failure_text(*outcome.cause), HasSubstr("grace period"));
}

TEST(GroupOutcome, SurvivesTheWayToAnotherNode) {
  RankEnd cause = killed(3, SIGBUS, 1);
  cause.host = "b";
  cause.pid = 77;
  cause.message = "said \"this\"\n";
  cause.progress.step = 12;
  cause.progress.phase = RankPhase::kComm;
  cause.progress.blamed_rank = 1;
  const auto read = outcome_from_json(to_json(outcome_of({cause}, 0, std::nullopt)));
  ASSERT_TRUE(read && read->cause);
  EXPECT_EQ(read->exit_code, 128 + SIGBUS);
  EXPECT_EQ(failure_text(*read->cause), failure_text(cause));
  EXPECT_EQ(read->cause->progress.blamed_rank, 1);
}

// A rank that ends with another's exit code because it heard of that one's failure may be first.
TEST(RootCause, IsNotTheRankThatOnlyHeardOfAnothersFailure) {
  RankEnd echo = ended(0, 1, 1.0);
  echo.progress.blamed_rank = 3;
  RankEnd own = ended(3, 1, 2.0);
  own.progress.blamed_rank = 3;
  EXPECT_FALSE(is_certain(echo));
  EXPECT_TRUE(is_certain(own));
  EXPECT_EQ(root_cause({echo, own}, 0)->rank, 3);
  EXPECT_EQ(root_cause({echo}, 0)->rank, 0);  // the other one is on another node
}

TEST(RootCause, IsTheRankThatMostOfThoseNameThatLostTheirPeers) {
  std::vector<RankEnd> ends = {ended(0, 5, 1.0), ended(1, 5, 2.0), ended(2, 5, 3.0),
                               ended(3, 5, 4.0)};
  for (RankEnd& end : ends) end.progress.blamed_rank = 2;
  ends[2].progress.blamed_rank = 0;
  EXPECT_EQ(blamed_by_most(ends), 2);
  EXPECT_EQ(root_cause(ends, 0)->rank, 2);
  ends[1].progress.blamed_rank = 0;
  ends[0].progress.blamed_rank = -1;
  ends[3].progress.blamed_rank = -1;
  EXPECT_EQ(root_cause(ends, 0)->rank, 0);
}

TEST(GroupOutcome, IsNothingForOtherBytes) {
  const std::string good = to_json(outcome_of({ended(0, 1, 1)}, 0, std::nullopt));
  for (size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_FALSE(outcome_from_json(good.substr(0, cut))) << cut;
  }
  for (const char* text : {"null", "[]", "{\"exit_code\":\"x\"}", "{\"exit_code\":1}", "\xff"}) {
    EXPECT_FALSE(outcome_from_json(text)) << text;
    EXPECT_FALSE(rank_end_from_json(text)) << text;
  }
}

TEST(FailureText, NamesRankHostStepAndPhase) {
  RankEnd end = killed(6, SIGSEGV, 1);
  end.local_rank = 2;
  end.host = "b";
  end.pid = 99;
  end.progress.step = 41;
  end.progress.phase = RankPhase::kBackward;
  EXPECT_THAT(failure_text(end),
              AllOf(HasSubstr("rank 6 (local rank 2, host b, pid 99)"), HasSubstr("SIGSEGV"),
                    HasSubstr("last finished step 41, phase backward")));
}

TEST(FailureText, EscapesWhatTheRankSaid) {
  RankEnd end = ended(0, 1, 1);
  end.message = "a\x1b[2Jb";
  EXPECT_THAT(failure_text(end), AllOf(Not(HasSubstr("\x1b")), HasSubstr("\\x1b")));
}

}  // namespace
}  // namespace assay::launch
