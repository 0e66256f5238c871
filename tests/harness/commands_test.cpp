// Options of `assay accept`, and the time that is left.
#include <array>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "harness/accept_command.h"
#include "harness/command_options.h"
#include "harness/progress_line.h"

namespace assay::harness {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr std::array<OptionSpec, 3> kSpecs = {{{"suite", "NAME", "quick", "Which suite.", "What"},
                                               {"time-budget", "MIN", "none", "Limit.", "What"},
                                               {"keep-checkpoints", "", "off", "Keep.", "Out"}}};

TEST(ParseCommandWords, TakesHyphensUnderscoresEqualsAndSpaces) {
  const CommandWords words = parse_command_words(
      kSpecs, Words{"--suite=full", "--time_budget", "9", "--keep-checkpoints"}, 0);
  EXPECT_EQ(words.value_or("suite", ""), "full");
  EXPECT_EQ(words.value_or("time-budget", ""), "9");
  EXPECT_TRUE(words.is_on("keep-checkpoints"));
  EXPECT_FALSE(
      parse_command_words(kSpecs, Words{"--no-keep-checkpoints"}, 0).is_on("keep-checkpoints"));
  EXPECT_FALSE(
      parse_command_words(kSpecs, Words{"--keep_checkpoints=false"}, 0).is_on("keep-checkpoints"));
}

std::string refusal(const Words& words) {
  try {
    parse_command_words(kSpecs, words, 0);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseCommandWords, NamesEveryBadWordAtOnce) {
  const std::string message = refusal({"--suit", "x", "--time-budget"});
  EXPECT_THAT(message, HasSubstr("did you mean --suite?"));
  EXPECT_THAT(message, HasSubstr("unexpected word \"x\""));
  EXPECT_THAT(message, HasSubstr("--time-budget needs a value: MIN"));
}

TEST(ParseCommandWords, RefusesRepeatsEmptyValuesAndOddFlags) {
  EXPECT_THAT(refusal({"--suite", "a", "--suite", "b"}), HasSubstr("given twice"));
  EXPECT_THAT(refusal({"--suite="}), HasSubstr("--suite is empty"));
  EXPECT_THAT(refusal({"--keep-checkpoints=maybe"}), HasSubstr("must be true or false"));
  EXPECT_THAT(refusal({"--no-suite"}), HasSubstr("unknown option"));
}

TEST(CommandHelp, NamesEveryOptionWithItsDefault) {
  const std::string help = command_help("assay x", "Does x.", kSpecs);
  for (const char* text :
       {"--suite NAME", "[quick]", "--time-budget MIN", "--keep-checkpoints", "What:", "Out:"}) {
    EXPECT_THAT(help, HasSubstr(text));
  }
}

std::string accept_refusal(const Words& words) {
  try {
    run_accept_command(words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(AcceptCommand, RefusesBadValuesBeforeAnythingIsMade) {
  TemporaryFolder folder;
  const std::string output = join_path(folder.path(), "out");
  const auto with = [&](Words words) {
    words.insert(words.end(), {"--output", output});
    return accept_refusal(words);
  };
  EXPECT_THAT(with({"--suite", "quik"}), HasSubstr("did you mean \"quick\""));
  EXPECT_THAT(with({"--lang", "fr"}), HasSubstr("must be en or zh"));
  EXPECT_THAT(with({"--time-budget", "-3"}), HasSubstr("minutes > 0"));
  EXPECT_THAT(with({"--time-budget", "nan"}), HasSubstr("minutes > 0"));
  EXPECT_THAT(with({"--scenarios", "smoke,,timing"}), HasSubstr("empty name"));
  EXPECT_THAT(with({"--suite", "quick", "--suite-file", "x.json"}), HasSubstr("both given"));
  EXPECT_THAT(with({"--config", join_path(folder.path(), "none.json")}), HasSubstr("none.json"));
  EXPECT_THAT(with({"--try-advice"}), HasSubstr("not in this release"));
  EXPECT_FALSE(path_exists(output));
}

TEST(AcceptCommand, WithoutATrainerThereIsNoFolderAndNoVerdict) {
  TemporaryFolder folder;
  const std::string output = join_path(folder.path(), "out");
  setenv("ASSAY_TRAIN", "/nonexistent/assay-train", 1);
  EXPECT_THROW(run_accept_command(Words{"--output", output}), CouldNotRunError);
  unsetenv("ASSAY_TRAIN");
  EXPECT_FALSE(path_exists(output));
}

TEST(TimeEstimate, ScalesWhatIsLeftByWhatWasMeasured) {
  TimeEstimate estimate({10, 20, 30});
  EXPECT_DOUBLE_EQ(estimate.seconds_left(0, 0, 0), 60);
  estimate.finished(0, 20);  // twice as slow as expected
  EXPECT_DOUBLE_EQ(estimate.scale(), 2);
  EXPECT_DOUBLE_EQ(estimate.seconds_left(1, 10, 0), 30 + 60);
}

TEST(TimeEstimate, ExtrapolatesAScenarioThatOutlivesItsExpectation) {
  const TimeEstimate estimate({10, 20});
  EXPECT_DOUBLE_EQ(estimate.seconds_left(0, 30, 0.5), 30 + 20);
  EXPECT_DOUBLE_EQ(estimate.seconds_left(0, 30, 0), 20);  // nothing known: never negative
}

}  // namespace
}  // namespace assay::harness
