// CONFIG.json: flat names, sections, and files that are no configuration.
#include <sys/stat.h>

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/trainer/config/fixtures.h"

namespace assay::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ParseJson, AcceptsFlatNamesAndSectionsAlike) {
  const RunConfig flat = ConfigFile(R"({"model": "gpt2", "dataset": "text", "learning_rate": 0.5,
      "optim": "sgd", "lr_scheduler_type": "linear", "save_steps": 7, "num_workers": 1})")
                             .parse()
                             .config;
  const RunConfig sections = ConfigFile(R"({"model": {"name": "gpt2"}, "data": {"name": "text",
      "num_workers": 1}, "optimizer": {"name": "sgd", "learning_rate": 0.5},
      "schedule": {"type": "linear"}, "checkpoint": {"save_steps": 7}})")
                                 .parse()
                                 .config;
  EXPECT_EQ(config_to_json(flat), config_to_json(sections));
  EXPECT_EQ(flat.model.name, "gpt2");
  EXPECT_EQ(flat.checkpoint.save_steps, 7);
}

TEST(ParseJson, AcceptsOptionNamesAndDottedKeysWithinSections) {
  const RunConfig config = ConfigFile(R"({"optimizer": {"lr": 0.5, "optim": "adamw_torch"},
      "dataset": {"data_dir": "x", "dataloader_num_workers": 3}, "model": {"name": "mnist_cnn"},
      "schedule.warmup_steps": 0, "optimizer.weight-decay": 0.25, "schedule": "cosine"})")
                               .parse()
                               .config;
  EXPECT_EQ(config.optimizer.learning_rate, 0.5);
  EXPECT_EQ(config.optimizer.name, "adamw");
  EXPECT_EQ(config.optimizer.weight_decay, 0.25);
  EXPECT_EQ(config.data.directory, "x");
  EXPECT_EQ(config.data.num_workers, 3);
  EXPECT_EQ(config.schedule.type, "cosine");
}

TEST(ParseJson, AcceptsCommentsByteOrderMarkAndCarriageReturns) {
  const ConfigFile file(
      "\xEF\xBB\xBF// a comment\r\n{\r\n  \"max_steps\": 5, /* here too */\r\n"
      "  \"bf16\": true\r\n}\r\n");
  const ParsedArguments parsed = file.parse();
  EXPECT_EQ(parsed.config.max_steps, 5);
  EXPECT_EQ(parsed.config.precision, "bf16");
  EXPECT_THAT(parsed.given, ElementsAre("max_steps", "precision"));
}

TEST(ParseJson, TakesNullAsLeftOut) {
  const RunConfig config = ConfigFile(R"({"max_steps": null, "output_dir": null, "data_dir": null,
      "resume_from_checkpoint": null, "model": {"n_layer": null}})")
                               .parse()
                               .config;
  EXPECT_EQ(config.max_steps, std::nullopt);
  EXPECT_EQ(config.output_dir, "");
  EXPECT_THAT(ConfigFile(R"({"batch_size": null})").refusal(),
              HasSubstr("batch_size is null, must be an integer in 1 .. "));
}

TEST(ParseJson, RefusesWrongTypes) {
  struct Case {
    const char *text, *expected;
  };
  const Case cases[] = {
      {R"({"max_steps": "30"})", "max_steps is \"30\", must be an integer"},
      {R"({"max_steps": 30.5})", "max_steps is 30.5, must be an integer"},
      {R"({"max_steps": true})", "max_steps is true, must be an integer"},
      {R"({"learning_rate": "0.1"})", "optimizer.learning_rate is \"0.1\", must be a number > 0"},
      {R"({"learning_rate": [0.1]})", "optimizer.learning_rate is an array"},
      {R"({"batch_size": {}})", "batch_size is an object"},
      {R"({"bf16": "yes"})", "bf16 is \"yes\", must be true or false"},
      {R"({"deterministic": 1})", "deterministic is 1, must be true or false"},
      {R"({"model": 5})", "model.name is 5, must be one of mnist_cnn"},
      {R"({"output_dir": 5})", "output_dir is 5, must be UTF-8 text"},
      {R"({"output_dir": "a\u0000b"})", "output_dir is \"a"},
      {R"({"checkpoint": 5})", "checkpoint is 5, must be an object"},
      {R"({"seed": 18446744073709551616})", "seed is "},
      {R"({"seed": -1})", "seed is -1, must be an integer in 0 .. "},
  };
  for (const Case& refused : cases) {
    const ConfigFile file(refused.text);
    EXPECT_THAT(file.refusal(),
                AllOf(HasSubstr(refused.expected), HasSubstr(file.path()), HasSubstr("Fix: ")))
        << refused.text;
  }
}

TEST(ParseJson, AcceptsIntegralNumbersInAnyNotation) {
  EXPECT_EQ(ConfigFile(R"({"max_steps": 1e3})").parse().config.max_steps, 1000);
  EXPECT_EQ(ConfigFile(R"({"batch_size": 8.0})").parse().config.batch_size, 8);
  EXPECT_EQ(ConfigFile(R"({"learning_rate": 1})").parse().config.optimizer.learning_rate, 1.0);
}

TEST(ParseJson, RefusesUnknownKeysWithTheNearestSpelling) {
  const ConfigFile file(R"({"leraning_rate": 0.1, "optimzer": {"lr": 1}, "model": {"n_layr": 2},
                            "optimzer.lr": 1, "n_layer": 2, "print_config": true})");
  const std::string message = file.refusal();
  EXPECT_THAT(message, HasSubstr(cat("unknown key \"leraning_rate\" (", file.path(),
                                     "); did you mean \"learning_rate\"?")));
  EXPECT_THAT(message, HasSubstr("unknown key \"optimzer\""));
  EXPECT_THAT(message, HasSubstr("unknown key \"model.n_layr\""));
  EXPECT_THAT(message, HasSubstr("did you mean \"model.n_layer\"?"));
  EXPECT_THAT(message, HasSubstr("\"optimzer.lr\""));
  EXPECT_THAT(message, HasSubstr("did you mean \"optimizer.learning_rate\"?"));
  EXPECT_THAT(message, HasSubstr("unknown key \"n_layer\""));
  EXPECT_THAT(message, HasSubstr("unknown key \"print_config\""));
}

TEST(ParseJson, RefusesASettingUnderTwoNamesWithDifferentValues) {
  const std::string message =
      ConfigFile(R"({"learning_rate": 0.1, "optimizer": {"learning_rate": 0.2}})").refusal();
  EXPECT_THAT(message, HasSubstr("optimizer.learning_rate is given twice with different values"));
  EXPECT_THAT(message,
              AllOf(HasSubstr("0.1"), HasSubstr("key \"learning_rate\""), HasSubstr("0.2")));
  EXPECT_EQ(
      ConfigFile(R"({"lr": 0.1, "learning_rate": 0.1})").parse().config.optimizer.learning_rate,
      0.1);
  EXPECT_THAT(ConfigFile(R"({"bf16": true, "precision": "fp64"})").refusal(), HasSubstr("twice"));
  EXPECT_THAT(ConfigFile(R"({"bf16": true, "fp16": true})").refusal(),
              AllOf(HasSubstr("given twice"), HasSubstr("fp16 is not in this release (0.1)")));
}

TEST(ParseJson, RefusesDuplicateKeysAndBrokenSyntax) {
  for (const char* text :
       {"{\"max_steps\": 1, \"max_steps\": 2}", "{\"max_steps\": 1,}", "{\"max_steps\": NaN}",
        "{\"max_steps\": 1", "{'max_steps': 1}", "{\"max_steps\": 1} trailing", "\xFF\xFE{\0}\0",
        "{\"output_dir\": \"\xF6\"}"}) {
    const ConfigFile file(text);
    EXPECT_THAT(file.refusal(), HasSubstr(file.path())) << text;
  }
}

TEST(ParseJson, RefusesFilesThatAreNoConfiguration) {
  const TemporaryFolder folder;
  const std::string missing = join_path(folder.path(), "missing.json");
  EXPECT_THAT(refusal({missing}), AllOf(HasSubstr(missing), HasSubstr("there is no such file")));
  EXPECT_THAT(refusal({folder.path()}), HasSubstr("it is a folder"));
  EXPECT_THAT(ConfigFile("").refusal(), HasSubstr("it is empty, expected a JSON object"));
  EXPECT_THAT(ConfigFile("\xEF\xBB\xBF \n").refusal(), HasSubstr("it is empty"));
  EXPECT_THAT(ConfigFile(std::string("{\"a\0b\": 1}", 10)).refusal(),
              HasSubstr("it is not text (zero byte at offset 3)"));
  EXPECT_THAT(ConfigFile("[1, 2]").refusal(),
              HasSubstr("it holds an array, expected a JSON object"));
  EXPECT_THAT(ConfigFile("42").refusal(), HasSubstr("it holds 42"));
  EXPECT_THAT(refusal({"/dev/null"}), HasSubstr("it is not a regular file"));
}

TEST(ParseJson, RefusesAFileItMayNotRead) {
  const ConfigFile file("{}");
  ASSERT_EQ(::chmod(file.path().c_str(), 0), 0);
  const std::string message = file.refusal();
  if (message.empty()) GTEST_SKIP() << "this user may read every file (root)";
  EXPECT_THAT(message, AllOf(HasSubstr(file.path()), HasSubstr("Permission denied")));
}

TEST(ParseJson, ReportsFileAndCommandLineTogether) {
  const ConfigFile broken("{");
  const std::string message = broken.refusal({"--batch_size=0"});
  EXPECT_THAT(message, AllOf(HasSubstr("2 problems"), HasSubstr(broken.path()),
                             HasSubstr("batch_size is 0")));
}

TEST(ParseJson, DoesNotJudgeCombinationsOfWhatIsBroken) {
  const std::string message = ConfigFile(R"({"model": "gtp2", "dataset": "text"})").refusal();
  EXPECT_THAT(message, HasSubstr("model.name is \"gtp2\""));
  EXPECT_THAT(message, Not(HasSubstr("reads images")));
}

}  // namespace
}  // namespace assay::config
