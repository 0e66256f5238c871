#include "trainer/estimate/estimate_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::estimate {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

std::string message_of(const Words& words) {
  try {
    parse_estimate_options(words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(EstimateOptions, LeaveTheTrainersWordsInTheirOrder) {
  const EstimateOptions options = parse_estimate_options(
      Words{"c.json", "--batch_size", "4", "--world", "8", "--bf16", "model.n_layer=2"});
  EXPECT_THAT(options.train_words,
              ElementsAre("c.json", "--batch_size", "4", "--bf16", "model.n_layer=2"));
  EXPECT_THAT(options.worlds, ElementsAre(8));
}

TEST(EstimateOptions, TakeListsAndRepeats) {
  const EstimateOptions options = parse_estimate_options(
      Words{"--world=8,2", "--world", "4,2", "--requests=3", "--requests=5,7"});
  EXPECT_THAT(options.worlds, ElementsAre(2, 4, 8));
  EXPECT_THAT(options.requests, ElementsAre(3, 5, 7));
}

TEST(EstimateOptions, TreatHyphensAndUnderscoresAlike) {
  const EstimateOptions options =
      parse_estimate_options(Words{"--link_gb_per_s=2.5", "--latency-us", "0", "--ranks_per-node=4",
                                   "--step-ms=12", "--world=2"});
  EXPECT_EQ(options.link_gb_per_s, 2.5);
  EXPECT_EQ(options.latency_us, 0);
  EXPECT_EQ(options.ranks_per_node, 4);
  EXPECT_EQ(options.step_ms, 12);
}

TEST(EstimateOptions, TakeSwitches) {
  EXPECT_TRUE(parse_estimate_options(Words{"--json"}).is_json);
  EXPECT_FALSE(parse_estimate_options(Words{"--json=false"}).is_json);
  EXPECT_TRUE(parse_estimate_options(Words{"--help"}).is_help);
  EXPECT_TRUE(parse_estimate_options(Words{"-h"}).is_help);
}

TEST(EstimateOptions, NameEveryBadWordAtOnce) {
  EXPECT_THAT(message_of({"--world=0,2,x", "--step-ms=-1", "--json=maybe", "--card"}),
              AllOf(HasSubstr("--world is \"0\", must be a whole number from 1"),
                    HasSubstr("--world is \"x\""), HasSubstr("--step-ms is \"-1\""),
                    HasSubstr("above 0"), HasSubstr("--json is \"maybe\""),
                    HasSubstr("--card needs a value"), HasSubstr("Fix:")));
}

TEST(EstimateOptions, RefuseWhatIsGivenTwiceOrEmpty) {
  EXPECT_THAT(message_of({"--card=h200", "--card=h100"}), HasSubstr("--card is given twice"));
  EXPECT_THAT(message_of({"--step-ms=1", "--step-ms=2"}), HasSubstr("--step-ms is given twice"));
  EXPECT_THAT(message_of({"--from-run="}), HasSubstr("--from-run is empty"));
  EXPECT_THAT(message_of({"--world="}), HasSubstr("--world is \"\""));
}

TEST(EstimateOptions, RefuseWhatSaysNothingWithoutRanks) {
  EXPECT_THAT(message_of({"--card=h100", "--json"}),
              AllOf(HasSubstr("--card says nothing without --world"), HasSubstr("Fix:")));
  EXPECT_THAT(message_of({"--all-reduce=times.jsonl"}), HasSubstr("--all-reduce says nothing"));
  EXPECT_EQ(message_of({"--from-run=runs/a", "--context=8"}), "nothing was thrown");
}

TEST(EstimateOptions, TakeTheRankOfADryRun) {
  const EstimateOptions options = parse_estimate_options(
      Words{"--dry-run-rank", "0", "--world=4,4", "--json", "--batch_size=2"});
  EXPECT_EQ(options.dry_run_rank, 0);
  EXPECT_THAT(options.worlds, ElementsAre(4));
  EXPECT_THAT(options.train_words, ElementsAre("--batch_size=2"));
}

TEST(EstimateOptions, RefuseADryRunOfNoRank) {
  EXPECT_THAT(message_of({"--dry-run-rank=3"}), HasSubstr("needs one --world"));
  EXPECT_THAT(message_of({"--dry-run-rank=3", "--world=2,4"}), HasSubstr("needs one --world"));
  EXPECT_THAT(message_of({"--dry-run-rank=4", "--world=4"}),
              HasSubstr("--dry-run-rank is 4, must be from 0 to 3 for --world 4"));
  EXPECT_THAT(message_of({"--dry-run-rank=-1", "--world=4"}),
              HasSubstr("--dry-run-rank is \"-1\", must be a whole number from 0"));
  EXPECT_THAT(message_of({"--dry-run-rank=1", "--dry-run-rank=2", "--world=4"}),
              HasSubstr("--dry-run-rank is given twice"));
}

TEST(EstimateOptions, RefusePredictionsInADryRun) {
  EXPECT_THAT(
      message_of({"--dry-run-rank=1", "--world=4", "--step-ms=3", "--from-run=a"}),
      AllOf(HasSubstr("--step-ms is for predictions"), HasSubstr("--from-run is for predictions")));
}

TEST(EstimateHelp, HasEveryOption) {
  const std::string help = estimate_help();
  for (const char* name :
       {"--world", "--dry-run-rank", "--ranks-per-node", "--link-gb-per-s", "--latency-us",
        "--inter-gb-per-s", "--inter-latency-us", "--card", "--step-ms", "--deviation-ms",
        "--from-run", "--all-reduce", "--context", "--requests", "--json", "--help"}) {
    EXPECT_THAT(help, HasSubstr(std::string("\n  ") + name));
  }
  EXPECT_THAT(help, AllOf(HasSubstr("Default: 1,8,32,128."), HasSubstr("Exit codes: 0")));
}

std::string planning_message(const Words& words) {
  try {
    parse_planned_run(words, nullptr);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(PlannedRun, IsWhatTheTrainerWouldRun) {
  EXPECT_EQ(parse_planned_run(Words{"--batch_size=3"}, nullptr).batch_size, 3);
  config::RunConfig base;
  base.seed = 7;
  EXPECT_EQ(parse_planned_run(Words{"--batch_size=3"}, &base).seed, 7u);
}

TEST(PlannedRun, NamesTheNearestOptionOfOurs) {
  EXPECT_THAT(planning_message({"--wrold=4"}),
              HasSubstr("; or did you mean --world of assay estimate?"));
  EXPECT_THAT(planning_message({"--batch_sze=4"}), testing::Not(HasSubstr("of assay estimate")));
}

}  // namespace
}  // namespace assay::estimate
