// The words of the command line.
#include <random>

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/trainer/config/fixtures.h"

namespace assay::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ParseOptions, AcceptsTheGuidesCommandLines) {
  const ParsedArguments smoke =
      parse_words({"--max_steps", "30", "--batch_size", "1", "--save_steps", "15", "--output_dir",
                   "checkpoints/smoke"});
  EXPECT_EQ(smoke.config.max_steps, 30);
  EXPECT_EQ(smoke.config.batch_size, 1);
  EXPECT_EQ(smoke.config.checkpoint.save_steps, 15);
  EXPECT_EQ(smoke.config.output_dir, "checkpoints/smoke");
  EXPECT_EQ(smoke.config.schedule.type, "constant");
  EXPECT_THAT(smoke.given,
              ElementsAre("batch_size", "checkpoint.save_steps", "max_steps", "output_dir"));
  const ParsedArguments resumed = parse_words(
      {"--resume_from_checkpoint", "checkpoints/smoke/checkpoint-15", "--max_steps", "35"});
  EXPECT_EQ(resumed.config.resume_from_checkpoint, "checkpoints/smoke/checkpoint-15");
}

TEST(ParseOptions, TakesNothingAsAllDefaults) {
  const ParsedArguments parsed = parse_words({});
  EXPECT_EQ(parsed.config.model.name, "mnist_cnn");
  EXPECT_EQ(parsed.config.data.name, "digits");
  EXPECT_TRUE(parsed.given.empty());
}

TEST(ParseOptions, TrainsGptsOnTextUnlessTold) {
  EXPECT_EQ(parse_words({"--model", "gpt_tiny"}).config.data.name, "text");
  EXPECT_EQ(parse_words({"--model=gpt2", "--dataset=synthetic"}).config.data.name, "synthetic");
}

TEST(ParseOptions, TreatsHyphenAndUnderscoreAlike) {
  EXPECT_EQ(parse_words({"--max-steps", "7"}).config.max_steps, 7);
  EXPECT_EQ(parse_words({"--optimizer.learning-rate=0.5"}).config.optimizer.learning_rate, 0.5);
  EXPECT_EQ(parse_words({"num-workers=3"}).config.data.num_workers, 3);
}

TEST(ParseOptions, ReadsYesNoOptionsInEveryForm) {
  EXPECT_EQ(parse_words({"--bf16"}).config.precision, "bf16");
  EXPECT_EQ(parse_words({"--bf16=true"}).config.precision, "bf16");
  EXPECT_EQ(parse_words({"--bf16=false"}).config.precision, "fp32");
  EXPECT_EQ(parse_words({"--no-bf16"}).config.precision, "fp32");
  EXPECT_EQ(parse_words({"--fp64"}).config.precision, "fp64");
  EXPECT_EQ(parse_words({"--no-fp16"}).config.precision, "fp32");
  EXPECT_TRUE(parse_words({"--deterministic"}).config.deterministic);
  EXPECT_FALSE(parse_words({"--no_pin_memory"}).config.data.pin_memory);
  EXPECT_FALSE(parse_words({"--pin_memory", "false"}).config.data.pin_memory);
  EXPECT_TRUE(parse_words({"--drop-last", "--max_steps", "1"}).config.data.drop_last);
  EXPECT_FALSE(parse_words({"data.shuffle=false"}).config.data.shuffle);
}

TEST(ParseOptions, KeepsAYesNoOptionFromEatingTheConfigurationFile) {
  const ConfigFile file("{\"max_steps\": 9}");
  EXPECT_EQ(parse_words({"--bf16", file.path()}).config.max_steps, 9);
}

TEST(ParseOptions, RefusesAValueForTheNegatedForm) {
  EXPECT_THAT(refusal({"--no-bf16=true"}), HasSubstr("--no-bf16 takes no value, got \"true\""));
  EXPECT_THAT(refusal({"--bf16=maybe"}), HasSubstr("bf16 is \"maybe\", must be true or false"));
  EXPECT_THAT(refusal({"--no-max_steps"}), HasSubstr("unknown option \"--no-max_steps\""));
}

TEST(ParseOptions, RefusesTwoPrecisionsAtOnce) {
  const std::string message = refusal({"--bf16", "--fp16"});
  EXPECT_THAT(message, AllOf(HasSubstr("option --bf16"), HasSubstr("option --fp16")));
  EXPECT_THAT(message, HasSubstr("precision is given twice with different values"));
  EXPECT_THAT(refusal({"--bf16", "--no-bf16"}),
              HasSubstr("bf16 is given twice with different values: true (option --bf16) and false "
                        "(option --no-bf16)"));
  EXPECT_THAT(refusal({"--fp64", "precision=bf16"}), HasSubstr("given twice"));
}

TEST(ParseOptions, RefusesASettingGivenTwiceWithDifferentValues) {
  EXPECT_THAT(
      refusal({"--batch_size", "8", "--per_device_train_batch_size", "16"}),
      HasSubstr("batch_size is given twice with different values: 8 (option --batch_size) and "
                "16 (option --per_device_train_batch_size)"));
  EXPECT_THAT(
      refusal({"--lr", "0.1", "optimizer.learning_rate=0.2"}),
      AllOf(HasSubstr("option --lr"), HasSubstr("argument \"optimizer.learning_rate=0.2\"")));
  EXPECT_EQ(parse_words({"--max_steps", "5", "max_steps=5"}).config.max_steps, 5);
}

TEST(ParseOptions, ReadsKeyValueWordsAsJsonElseText) {
  const RunConfig config =
      parse_words({"model=gpt_tiny", "model.n_layer=2", "optimizer.learning_rate=2e-3",
                   "output_dir=5", "data.num_workers=null", "data={\"sequence_length\": 32}",
                   "max_steps=1e3"})
          .config;
  EXPECT_EQ(config.model.n_layer, 2);
  EXPECT_EQ(config.optimizer.learning_rate, 2e-3);
  EXPECT_EQ(config.output_dir, "5");
  EXPECT_EQ(config.data.num_workers, std::nullopt);
  EXPECT_EQ(config.data.sequence_length, 32);
  EXPECT_EQ(config.max_steps, 1000);
}

TEST(ParseOptions, LetsTheCommandLineWinOverTheFile) {
  const ConfigFile file(R"({"max_steps": 10, "bf16": true, "learning_rate": 0.5})");
  const ParsedArguments parsed = file.parse({"--max_steps=20", "--no-bf16"});
  EXPECT_EQ(parsed.config.max_steps, 20);
  EXPECT_EQ(parsed.config.precision, "fp32");
  EXPECT_EQ(parsed.config.optimizer.learning_rate, 0.5);
  EXPECT_EQ(file.parse({"--fp64"}).config.precision, "fp64");
  EXPECT_EQ(file.parse({"--no-fp64"}).config.precision, "bf16");
}

TEST(ParseOptions, AcceptsAliasesOfTheOptimizer) {
  EXPECT_EQ(parse_words({"--optim", "adamw_torch"}).config.optimizer.name, "adamw");
  EXPECT_EQ(parse_words({"--optim=adamw_torch_fused"}).config.optimizer.name, "adamw");
  EXPECT_EQ(parse_words({"--optim=sgd"}).config.optimizer.name, "sgd");
}

TEST(ParseOptions, RefusesNegativeNumbersByRangeNotByShape) {
  EXPECT_EQ(
      refusal({"--learning_rate", "-0.1"}),
      "optimizer.learning_rate is -0.1, must be a number > 0 (option --learning_rate). Fix: set "
      "it, e.g. --learning_rate 0.001");
  EXPECT_THAT(refusal({"--weight_decay", "-1"}), HasSubstr("is -1, must be a number >= 0"));
}

TEST(ParseOptions, RefusesNumbersOutOfRangeNamingKeyAndRange) {
  struct Case {
    std::vector<std::string> words;
    std::string key, got, range;
  };
  const Case cases[] = {
      {{"--max_steps", "0"}, "max_steps", "is 0", "1 .. 2147483647"},
      {{"--max_steps=-1"}, "max_steps", "is -1", "1 .. 2147483647"},
      {{"--batch_size", "0"}, "batch_size", "is 0", "1 .. 2147483647"},
      {{"--batch_size", "2147483648"}, "batch_size", "is 2147483648", "1 .. 2147483647"},
      {{"--batch_size", "99999999999999999999"},
       "batch_size",
       "is 99999999999999999999",
       "1 .. 2147483647"},
      {{"--gradient_accumulation_steps", "0"}, "gradient_accumulation_steps", "is 0", "1 .. "},
      {{"--num_workers", "-1"}, "data.num_workers", "is -1", "0 .. 1024"},
      {{"--save_steps", "-5"}, "checkpoint.save_steps", "is -5", "0 .. 2147483647"},
      {{"--eval_steps", "-1"}, "eval_steps", "is -1", "0 .. 2147483647"},
      {{"--logging_steps", "1.5"}, "logging_steps", "is 1.5", "an integer in 0 .. 2147483647"},
      {{"--lr", "nan"}, "optimizer.learning_rate", "is \"nan\"", "a number > 0"},
      {{"--lr", "inf"}, "optimizer.learning_rate", "is \"inf\"", "a number > 0"},
      {{"--lr", "1e999"}, "optimizer.learning_rate", "is \"1e999\"", "a number > 0"},
      {{"--lr", "0"}, "optimizer.learning_rate", "is 0", "a number > 0"},
      {{"--lr", "0,1"}, "optimizer.learning_rate", "is \"0,1\"", "a number > 0"},
      {{"--num_train_epochs", "0"}, "num_train_epochs", "is 0", "a number > 0"},
      {{"--adam_beta2", "1"}, "optimizer.adam_beta2", "is 1", "a number >= 0 and < 1"},
      {{"--label_smoothing_factor", "1"}, "label_smoothing_factor", "is 1", ">= 0 and < 1"},
      {{"model.dropout=-0.1"}, "model.dropout", "is -0.1", ">= 0 and < 1"},
      {{"--max_steps", ""}, "max_steps", "is \"\"", "an integer"},
      {{"--max_steps", " 5"}, "max_steps", "is \" 5\"", "an integer"},
      {{"--max_steps", "5x"}, "max_steps", "is \"5x\"", "an integer"},
      {{"--output_dir", ""}, "output_dir", "is \"\"", "1 to 4095 bytes"},
      {{"--output_dir", std::string(5000, 'a')}, "output_dir", "(5000 bytes)", "1 to 4095 bytes"},
      {{"--output_dir",
        "Gr\xF6\xDF"
        "e"},
       "output_dir",
       "is ",
       "UTF-8"},
  };
  for (const Case& refused : cases) {
    const std::string message = refusal(refused.words);
    EXPECT_THAT(message, AllOf(HasSubstr(refused.key), HasSubstr(refused.got),
                               HasSubstr(refused.range), HasSubstr("Fix: ")))
        << refused.words.front();
  }
}

TEST(ParseOptions, AcceptsZeroWhereItMeansNever) {
  const RunConfig config = parse_words({"--save_steps=0", "--eval_steps=0", "--logging_steps=0",
                                        "--save_total_limit=0", "--num_workers=0"})
                               .config;
  EXPECT_EQ(config.checkpoint.save_steps, 0);
  EXPECT_EQ(config.data.num_workers, 0);
}

TEST(ParseOptions, KeepsEverySeedOfSixtyFourBitsApart) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{4294967295}, uint64_t{4294967296},
                              uint64_t{1} + (uint64_t{1} << 40), uint64_t{1} << 63, UINT64_MAX}) {
    const std::string text = std::to_string(seed);
    EXPECT_EQ(parse_words({"--seed", text}).config.seed, seed);
    EXPECT_EQ(parse_words({cat("seed=", text)}).config.seed, seed);
    EXPECT_EQ(ConfigFile(cat("{\"seed\": ", text, "}")).parse().config.seed, seed);
  }
}

TEST(ParseOptions, RefusesSeedsThatAreNoSeeds) {
  for (const std::string seed : {"-1", "abc", "1.5", "18446744073709551616", ""}) {
    EXPECT_THAT(refusal({"--seed", seed}),
                AllOf(HasSubstr("seed is "), HasSubstr(seed),
                      HasSubstr("must be an integer in 0 .. 18446744073709551615")));
  }
  EXPECT_THAT(refusal({"seed=abc"}), HasSubstr("seed is \"abc\""));
}

TEST(ParseOptions, SuggestsTheNearestSpelling) {
  EXPECT_EQ(refusal({"--leraning_rate", "0.1"}),
            "unknown option \"--leraning_rate\"; did you mean \"--learning_rate\"?");
  EXPECT_THAT(refusal({"--n-layer=2"}), HasSubstr("did you mean \"model.n_layer=...\"?"));
  EXPECT_THAT(refusal({"optimzer.lr=1"}), HasSubstr("did you mean \"optimizer.learning_rate\"?"));
  EXPECT_THAT(refusal({"--model", "gpt_tinny"}), HasSubstr("did you mean \"gpt_tiny\"?"));
  EXPECT_THAT(refusal({"--no-determinstic"}), HasSubstr("did you mean \"--no_deterministic\"?"));
  EXPECT_THAT(refusal({"--quantum_flux"}),
              HasSubstr("Fix: assay train --help lists every setting"));
  EXPECT_EQ(refusal({"-lr"}),
            "unknown option \"-lr\", options start with two hyphens; did you mean \"--lr\"?");
}

TEST(ParseOptions, ReportsEveryViolationAtOnce) {
  const std::string message =
      refusal({"--batch_size", "0", "--lr", "-1", "--bogus", "x", "seed=-1"});
  EXPECT_THAT(message, HasSubstr("4 problems in the configuration:\n"));
  for (const char* part : {"batch_size is 0", "learning_rate is -1", "\"--bogus\"", "seed is -1"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
  EXPECT_THAT(message, Not(HasSubstr("CONFIG.json")));  // "x" belongs to --bogus
}

TEST(ParseOptions, RefusesAMissingValue) {
  EXPECT_THAT(refusal({"--batch_size"}),
              HasSubstr("--batch_size needs a value: an integer in 1 .. "));
  EXPECT_THAT(refusal({"--output_dir", "--bf16"}), HasSubstr("--output_dir needs a value"));
}

TEST(ParseOptions, RefusesTwoConfigurationFiles) {
  EXPECT_THAT(refusal({"a.json", "b.json"}),
              HasSubstr("CONFIG.json is given twice: \"a.json\" and \"b.json\""));
  EXPECT_THAT(refusal({""}), HasSubstr("CONFIG.json is \"\""));
}

TEST(ParseOptions, RefusesMalformedWords) {
  EXPECT_THAT(refusal({"=5"}), HasSubstr("unknown key \"\""));
  EXPECT_THAT(refusal({"--"}), HasSubstr("unknown option \"--\""));
  EXPECT_THAT(refusal({"--=3"}), HasSubstr("unknown option \"--\""));
  EXPECT_THAT(refusal({"-"}), HasSubstr("CONFIG.json \"-\""));
  EXPECT_THAT(refusal({"model={\"n_layer\": 2, \"n_layer\": 3}"}), HasSubstr("n_layer"));
  EXPECT_THAT(refusal({"--print-config=yes"}), HasSubstr("--print-config takes no value"));
}

TEST(ParseOptions, SeesHelpAndPrintConfig) {
  EXPECT_TRUE(parse_words({"--help"}).is_help);
  EXPECT_TRUE(parse_words({"-h", "--bogus"}).is_help);
  EXPECT_TRUE(parse_words({"--print-config"}).is_print_config);
  EXPECT_TRUE(parse_words({"--print_config"}).is_print_config);
}

// Whatever the words are, they are accepted or refused as usage; nothing else escapes.
TEST(ParseOptions, SurvivesRandomWords) {
  const unsigned seed = 20260117;
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  const std::string pieces[] = {"--",   "-",    "=",    "max_steps", "bf16", "no-",  "model",
                                ".",    "{",    "}",    "\"",        "1",    "-1",   "1e9",
                                "null", "data", "\xFF", " ",         "[",    "seed", "optimizer.",
                                "lr",   ",",    "true", "nan",       "/"};
  std::uniform_int_distribution<size_t> any_piece(0, std::size(pieces) - 1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<std::string> words(1 + random() % 4);
    for (std::string& word : words) {
      for (size_t i = 0; i < 1 + random() % 5; ++i) word += pieces[any_piece(random)];
    }
    try {
      parse_words(words);
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()), "");
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << ", words " << join(words, "|") << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace assay::config
