#include <iostream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoints/checkpoint_command.h"
#include "checkpoints/diff_command.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;

struct Outcome {
  int code = -1;
  std::string text;
};

template <class Command>
Outcome run(Command command, const Words& words) {
  std::ostringstream captured;
  std::streambuf* const before = std::cout.rdbuf(captured.rdbuf());
  Outcome outcome;
  try {
    outcome.code = command(words);
  } catch (...) {
    std::cout.rdbuf(before);
    throw;
  }
  std::cout.rdbuf(before);
  outcome.text = captured.str();
  return outcome;
}

Outcome checkpoint(const Words& words) { return run(run_checkpoint_command, words); }
Outcome diff(const Words& words) { return run(run_diff_command, words); }

nlohmann::json json_of(const Outcome& outcome) { return nlohmann::json::parse(outcome.text); }

TEST(CheckpointCommand, ListShowsStepSizeAndDamage) {
  const TemporaryFolder run;
  commit_sample(run.path(), 10);
  const std::string second = commit_sample(run.path(), 20);
  flip_byte(join_path(second, kModelFile), 300);
  const Outcome outcome = checkpoint({"list", run.path()});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("checkpoint-10"), HasSubstr("NO"), HasSubstr("model.safetensors")));
  const nlohmann::json json = json_of(checkpoint({"list", run.path(), "--json"}));
  ASSERT_EQ(json["checkpoints"].size(), 2U);
  EXPECT_EQ(json["checkpoints"][0]["step"], 10);
  EXPECT_EQ(json["checkpoints"][0]["valid"], true);
  EXPECT_EQ(json["checkpoints"][1]["valid"], false);
  EXPECT_GT(json["checkpoints"][0]["bytes"], 1000);
  const TemporaryFolder empty;
  EXPECT_THAT(checkpoint({"list", empty.path()}).text, HasSubstr("no checkpoints"));
}

TEST(CheckpointCommand, VerifyEndsWithFourIfAnythingIsDamaged) {
  const TemporaryFolder run;
  const std::string first = commit_sample(run.path(), 10);
  const std::string second = commit_sample(run.path(), 20);
  EXPECT_EQ(checkpoint({"verify", run.path()}).code, 0);
  flip_byte(join_path(second, kTrainerStateFile), 20);
  const Outcome outcome = checkpoint({"verify", run.path()});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("DAMAGED"), HasSubstr("trainer_state.json")));
  EXPECT_EQ(checkpoint({"verify", first}).code, 0);
  EXPECT_EQ(
      json_of(checkpoint({"verify", second, "--json"}))["checkpoints"][0]["findings"][0]["file"],
      "trainer_state.json");
  const TemporaryFolder empty;
  EXPECT_THROW(checkpoint({"verify", empty.path()}), CheckpointError);
  EXPECT_THROW(checkpoint({"verify", join_path(empty.path(), "none")}), CheckpointError);
}

TEST(CheckpointCommand, InspectShowsFactsAndTensors) {
  const TemporaryFolder run;
  const std::string path = commit_sample(run.path(), 10);
  for (const std::string& target : {path, run.path()}) {
    EXPECT_THAT(checkpoint({"inspect", target}).text,
                AllOf(HasSubstr("conv1.weight"), HasSubstr("[2, 1, 3, 3]"), HasSubstr("adamw"),
                      HasSubstr("F32")));
  }
  const nlohmann::json json = json_of(checkpoint({"inspect", path, "--json"}));
  EXPECT_EQ(json["step"], 10);
  EXPECT_EQ(json["tensors"]["model.safetensors"].size(), 3U);
  EXPECT_EQ(json["trainer_state"]["optimizer"], "adamw");
  const std::string file = join_path(path, kModelFile);
  EXPECT_THAT(checkpoint({"inspect", file}).text, HasSubstr("3 tensors"));
  EXPECT_EQ(json_of(checkpoint({"inspect", file, "--json"}))["metadata"]["format"], "pt");
}

TEST(CheckpointCommand, DigestPrintsTotalAndComponents) {
  const TemporaryFolder run;
  const std::string path = commit_sample(run.path(), 10);
  const StateDigest digest = state_digest(SampleState(10).parts);
  EXPECT_THAT(
      checkpoint({"digest", path}).text,
      AllOf(HasSubstr(digest.total + "  total"), HasSubstr(digest.components.at("rng") + "  rng")));
  const nlohmann::json json = json_of(checkpoint({"digest", path, "--json"}));
  EXPECT_EQ(json["state_digest"], digest.total);
  EXPECT_EQ(json["components"].size(), 7U);
}

TEST(CheckpointCommand, ExportWritesTheWeightsAlone) {
  const TemporaryFolder run;
  const TemporaryFolder out;
  const std::string path = commit_sample(run.path(), 10);
  const std::string file = join_path(out.path(), "weights, v1.safetensors");
  EXPECT_EQ(checkpoint({"export", path, "--output", file}).code, 0);
  const SafetensorsFile exported(file);
  EXPECT_EQ(exported.tensors().size(), 3U);
  EXPECT_NE(exported.find("conv1.weight"), nullptr);
  EXPECT_EQ(read_file(file), read_file(join_path(path, kModelFile)));
  EXPECT_EQ(list_directory(out.path()).size(), 1U);
  EXPECT_THAT(thrown_message<ConfigError>([&] {
                checkpoint({"export", path, "--output=" + file});
              }),
              HasSubstr("exists already"));
  EXPECT_THROW(checkpoint({"export", path}), ConfigError);
  EXPECT_THROW(checkpoint({"export", path, "--output", "x.pt"}), ConfigError);
  EXPECT_THROW(
      checkpoint({"export", path, "--output", join_path(out.path(), "none/x.safetensors")}),
      CheckpointError);
}

TEST(CheckpointCommand, WrongWordsGetTheNearestSpelling) {
  const auto refused = [](const Words& words) {
    return thrown_message<ConfigError>([&] { checkpoint(words); });
  };
  EXPECT_THAT(refused({"lst", "x"}), HasSubstr("did you mean \"list\"?"));
  EXPECT_THAT(refused({"export", "x", "--format", "torchvison"}),
              AllOf(HasSubstr("--format is \"torchvison\""), HasSubstr("Fix: --format torchvision")));
  EXPECT_THAT(refused({"list", "x", "--jsn"}), HasSubstr("did you mean \"--json\"?"));
  EXPECT_THAT(refused({"list", "x", "--output", "y"}), HasSubstr("--output"));
  EXPECT_THAT(refused({"list"}), HasSubstr("got 0"));
  EXPECT_THAT(refused({"list", "x", "y"}), HasSubstr("got 2"));
  EXPECT_THAT(refused({}), HasSubstr("subcommand"));
}

TEST(CheckpointCommand, HelpNamesEveryOption) {
  EXPECT_THAT(checkpoint({"--help"}).text,
              AllOf(HasSubstr("list"), HasSubstr("export"), HasSubstr("verify")));
  for (const std::string name : {"list", "inspect", "verify", "digest", "export", "import"}) {
    const Outcome outcome = checkpoint({name, "--help"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.text,
                AllOf(HasSubstr("--json"), HasSubstr(name), HasSubstr("(default: off)")));
  }
  EXPECT_THAT(checkpoint({"export", "--help"}).text, HasSubstr("--output"));
}

TEST(DiffCommand, EqualIsZeroAndDifferentIsSix) {
  const TemporaryFolder left;
  const TemporaryFolder right;
  const std::string first = commit_sample(left.path(), 10);
  SampleState other(10);
  other.set_float(other.parts.model, "conv1.bias", 1, 3);
  const std::string second = commit_checkpoint(request_for(right.path(), other)).path;
  const Outcome equal = diff({first, first});
  EXPECT_EQ(equal.code, 0);
  EXPECT_THAT(equal.text, HasSubstr("EQUAL"));
  const Outcome different = diff({first, second});
  EXPECT_EQ(different.code, 6);
  EXPECT_THAT(different.text,
              AllOf(HasSubstr("conv1.bias[1]: 10101 | 3"), HasSubstr("likely reason")));
  const nlohmann::json json = json_of(diff({"--json", first, second}));
  EXPECT_EQ(json["verdict"], "different");
  EXPECT_EQ(json["differences"][0]["field"], "conv1.bias[1]");
  EXPECT_EQ(json_of(diff({first, first, "--json"}))["verdict"], "equal");
}

TEST(DiffCommand, ManyDifferencesAreCountedNotPrinted) {
  const TemporaryFolder left;
  const TemporaryFolder right;
  SampleState first(10);
  SampleState second(10);
  for (int index = 0; index < 40; ++index) {
    const float one = 1;
    const float two = 2;
    first.parts.model.push_back(first.add(cat("w", index), "F32", {}, &one, sizeof one));
    second.parts.model.push_back(second.add(cat("w", index), "F32", {}, &two, sizeof two));
  }
  const std::string text = diff({commit_checkpoint(request_for(left.path(), first)).path,
                                 commit_checkpoint(request_for(right.path(), second)).path})
                               .text;
  EXPECT_THAT(text, HasSubstr("and 20 more"));
}

TEST(DiffCommand, WrongWordsAndUnreadableFoldersAreErrors) {
  EXPECT_THROW(diff({"x"}), ConfigError);
  EXPECT_THAT(thrown_message<ConfigError>([] {
                diff({"x", "y", "--jsonn"});
              }),
              HasSubstr("--json"));
  EXPECT_THROW(diff({"no-such-folder", "no-such-folder"}), CheckpointError);
  EXPECT_THAT(diff({"--help"}).text, HasSubstr("LEFT RIGHT"));
}

}  // namespace
}  // namespace assay::checkpoints
