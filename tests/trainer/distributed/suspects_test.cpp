#include "trainer/distributed/suspects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::distributed {
namespace {

using launch::RankPhase;
using testing::HasSubstr;

PeerView view(int64_t rank, int64_t collectives, RankPhase phase = RankPhase::kComm) {
  PeerView peer;
  peer.rank.rank = rank;
  peer.rank.host = "h";
  peer.beat.number = 7;
  peer.beat.phase = phase;
  peer.beat.collectives = collectives;
  peer.beat.elements = 10;
  peer.beat.planned_elements = 10;
  return peer;
}

TEST(FindSuspect, IsTheSilentRankBeforeAllOthers) {
  PeerView silent = view(2, 5);
  silent.is_silent = true;
  PeerView odd = view(1, 5);
  odd.beat.elements = 9;
  const Suspect suspect = find_suspect({odd, silent}, view(0, 5));
  EXPECT_EQ(suspect.rank, 2);
  EXPECT_THAT(suspect.text, HasSubstr("no sign of life"));
}

TEST(FindSuspect, IsTheRankThatReducedAnotherSize) {
  PeerView odd = view(1, 5);
  odd.beat.elements = 9;
  EXPECT_EQ(find_suspect({odd}, view(0, 5)).rank, 1);
  EXPECT_EQ(find_suspect({view(0, 5)}, odd).rank, 1);
}

TEST(FindSuspect, IsTheRankThatComputesWhileTheOthersWait) {
  EXPECT_EQ(find_suspect({view(1, 4, RankPhase::kDataWait), view(2, 5)}, view(0, 5)).rank, 1);
}

TEST(FindSuspect, IsTheRankWhoseCountDiffersFromMost) {
  EXPECT_EQ(find_suspect({view(1, 4), view(2, 5)}, view(0, 5)).rank, 1);
  EXPECT_EQ(find_suspect({view(1, 6), view(2, 5)}, view(0, 5)).rank, 1);
  EXPECT_EQ(find_suspect({view(1, 4)}, view(0, 5)).rank, 1);
}

// Rank 1 left one of two collectives out, so it is the one with more by now.
TEST(FindSuspect, IsTheRankThatWentOnWithoutACollective) {
  PeerView ahead = view(1, 13);
  ahead.beat.steps_begun = 6;
  ahead.beat.before_step = 11;
  ahead.beat.in_step_before = 1;
  PeerView behind = view(0, 12);
  behind.beat.steps_begun = 5;
  behind.beat.before_step = 10;
  behind.beat.in_step_before = 2;
  EXPECT_EQ(find_suspect({ahead}, behind).rank, 1);
  EXPECT_EQ(find_suspect({behind}, ahead).rank, 1);
  // With both started, being in the next step is no fault.
  ahead.beat.in_step_before = 2;
  EXPECT_NE(find_suspect({ahead}, behind).rank, 1);
}

TEST(FindSuspect, IsNobodyWhereAllSignsAgree) {
  EXPECT_EQ(find_suspect({view(1, 5), view(2, 5)}, view(0, 5)).rank, -1);
}

TEST(Beat, SurvivesTheStore) {
  Beat beat{.number = 1,
            .step = 2,
            .phase = RankPhase::kForward,
            .collectives = 3,
            .elements = 4,
            .planned_elements = 5,
            .steps_begun = 6,
            .before_step = 7,
            .in_step_before = 8};
  EXPECT_EQ(to_json(beat_from_json(to_json(beat))), to_json(beat));
  EXPECT_EQ(beat_from_json("no JSON").number, 0);
}

}  // namespace
}  // namespace assay::distributed
