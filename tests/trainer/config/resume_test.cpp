// What a resume takes over from the run's own configuration.
#include <gmock/gmock.h>

#include "tests/trainer/config/fixtures.h"

namespace assay::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunConfig stored_run() {
  return parse_words({"--model=gpt_tiny", "--max_steps=30", "--lr=0.5", "--output_dir=old",
                      "--overwrite_output_dir", "schedule.total_steps=30", "--bf16"})
      .config;
}

TEST(Resume, TakesOverAllThatIsNotGiven) {
  const RunConfig base = stored_run();
  const ParsedArguments parsed = parse_words({"--max_steps=35"}, &base);
  EXPECT_EQ(parsed.config.model.name, "gpt_tiny");
  EXPECT_EQ(parsed.config.optimizer.learning_rate, 0.5);
  EXPECT_EQ(parsed.config.precision, "bf16");
  EXPECT_EQ(parsed.config.max_steps, 35);
  EXPECT_EQ(parsed.config.schedule.total_steps, 30);
  EXPECT_THAT(parsed.given, ElementsAre("max_steps"));
}

TEST(Resume, ForgetsWhatConcernedTheFirstSessionAlone) {
  RunConfig base = stored_run();
  base.resume_from_checkpoint = "latest";
  base.allow_config_change = "seed";
  const RunConfig config = parse_words({}, &base).config;
  EXPECT_EQ(config.output_dir, "");
  EXPECT_FALSE(config.overwrite_output_dir);
  EXPECT_EQ(config.resume_from_checkpoint, "");
  EXPECT_EQ(config.allow_config_change, "");
}

TEST(Resume, LetsANullOrANoUndoTheStoredValue) {
  const RunConfig base = stored_run();
  EXPECT_EQ(parse_words({"schedule.total_steps=null"}, &base).config.schedule.total_steps,
            std::nullopt);
  EXPECT_EQ(parse_words({"--no-bf16"}, &base).config.precision, "fp32");
}

TEST(Resume, IsSeenBeforeTheStoredConfigurationIsKnown) {
  // The default model could not have this length; the stored one may.
  const std::vector<std::string> words = {"--resume_from_checkpoint=runs/a/checkpoint-15",
                                          "data.sequence_length=64"};
  EXPECT_THAT(refusal(words), HasSubstr("reads images"));
  const ParsedArguments peeked = peek_train_arguments(words);
  EXPECT_EQ(peeked.config.resume_from_checkpoint, "runs/a/checkpoint-15");
  const RunConfig base = stored_run();
  EXPECT_EQ(parse_words(words, &base).config.data.sequence_length, 64);
}

TEST(Resume, StillRefusesSyntaxWhenPeeking) {
  EXPECT_THROW(peek_train_arguments(std::vector<std::string>{"--batch_size=0"}), ConfigError);
  EXPECT_THROW(peek_train_arguments(std::vector<std::string>{"--bogus"}), ConfigError);
}

}  // namespace
}  // namespace assay::config
