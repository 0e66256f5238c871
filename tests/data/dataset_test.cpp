#include "data/dataset.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/embedded_samples.h"
#include "data/survey.h"
#include "tests/data/idx_files.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Sample {
  std::vector<unsigned char> pixels;
  std::vector<int64_t> tokens;
  std::vector<int64_t> targets;
};

Sample read_sample_of(const Dataset& dataset, int64_t id) {
  Sample sample;
  sample.pixels.resize(dataset.spec().feature_bytes());
  sample.targets.resize(static_cast<size_t>(dataset.spec().targets_per_sample));
  dataset.read(id, sample.pixels, sample.targets);
  sample.tokens.resize(sample.pixels.size() / sizeof(int64_t));
  std::memcpy(sample.tokens.data(), sample.pixels.data(), sample.tokens.size() * sizeof(int64_t));
  return sample;
}

TEST(EmbeddedSamples, HoldTheFilesOfTheirReadme) {
  EXPECT_EQ(sha256_hex(embedded_digits_images()),
            "359cd13f0f514122884198b78a131df597421cbf5e93a76678fa96fc548f0d96");
  EXPECT_EQ(sha256_hex(embedded_digits_labels()),
            "ce71631c1f31ce56fa54f31d1d498fafacff59b001e6c30c4a5e29508aa277ad");
  EXPECT_EQ(sha256_hex(embedded_text()),
            "aa808e35ed2e9bb084a86e0fc93ef41cc4b51064b97f9f288102e6d8df4649ca");
  EXPECT_TRUE(is_valid_utf8(embedded_text()));
}

TEST(Digits, HoldOutEverySixth) {
  const OpenedData data = open_data({.name = "digits"});
  ASSERT_EQ(data.train->size(), 1498);
  ASSERT_EQ(data.eval->size(), 299);
  EXPECT_EQ(data.train->spec().feature_shape, (std::vector<int64_t>{1, 28, 28}));
  const std::string_view labels = embedded_digits_labels().substr(8);
  for (int64_t id = 0; id < 299; ++id) {
    EXPECT_EQ(read_sample_of(*data.eval, id).targets[0], labels[static_cast<size_t>(6 * id + 5)]);
  }
}

// Recorded once with PyTorch 2.11.0 (CPU) from the IDX file's images a [1797, 1, 8, 8]:
//   y = interpolate(a.double() * 255 / 16, size=(28, 28), mode="bilinear", align_corners=False)
//   y.round().to(uint8), then SHA-256 of the bytes,
// with the 1,943 of 1,408,848 pixels whose exact value is 127.5 set to 128: there torch gives 127
// or 128 by rounding noise, and not the same in float32 as in float64.
TEST(Digits, AreEnlargedAsTorchDoes) {
  const OpenedData data = open_data({.name = "digits"});
  Sha256 sha256;
  for (int64_t i = 0; i < 1797; ++i) {
    const bool is_held_out = i % 6 == 5;
    const Sample sample =
        is_held_out ? read_sample_of(*data.eval, i / 6) : read_sample_of(*data.train, i - i / 6);
    sha256.update(sample.pixels.data(), sample.pixels.size());
  }
  EXPECT_EQ(sha256.hex(), "28e94d53a2698536df9e8e4e8d9be89f3fdfc2bcb87ab0ac952a1b34c5fead10");
}

TEST(Digits, NormaliseWithTheStatisticsOfTheirTrainingImages) {
  const OpenedData data = open_data({.name = "digits"});
  const SplitSurvey survey = survey_split(*data.train, "train");
  // The constants are rounded to four digits.
  EXPECT_NEAR(survey.mean[0], static_cast<double>(data.train->spec().mean[0]), 5.1e-5);
  EXPECT_NEAR(survey.stddev[0], static_cast<double>(data.train->spec().stddev[0]), 5.1e-5);
  EXPECT_EQ(survey.targets.size(), 10U);
}

TEST(Digits, RefuseADirectory) {
  EXPECT_THAT(thrown_message<ConfigError>(
                  [] { open_data({.name = "digits", .directory = "/some/where"}); }),
              AllOf(HasSubstr("\"/some/where\""), HasSubstr("embedded"), HasSubstr("--data_dir")));
}

TEST(Text, GivesWindowsWithTheNextByteAsTarget) {
  const OpenedData data = open_data({.name = "text", .sequence_length = 100});
  const std::string_view text = embedded_text();
  EXPECT_EQ(data.train->size(), (990222 - 99022 - 1) / 100);
  EXPECT_EQ(data.eval->size(), (99022 - 1) / 100);
  EXPECT_EQ(data.train->spec().num_classes, 256);
  EXPECT_EQ(data.train->valid_targets(3), 100);
  for (const int64_t id : {int64_t{0}, int64_t{17}, data.train->size() - 1}) {
    const Sample sample = read_sample_of(*data.train, id);
    for (size_t t = 0; t < 100; ++t) {
      ASSERT_EQ(sample.tokens[t], text[static_cast<size_t>(id) * 100 + t]);
      ASSERT_EQ(sample.targets[t], text[static_cast<size_t>(id) * 100 + t + 1]);
    }
  }
  EXPECT_EQ(read_sample_of(*data.eval, 0).tokens[0], text[990222 - 99022]);
}

TEST(Text, ReadsEveryByteValue) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "all.txt");
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes.push_back(static_cast<char>(i));
  write_bytes(path, bytes);
  const OpenedData data = open_data({.name = "text", .directory = path, .sequence_length = 1});
  EXPECT_EQ(data.train->size(), 899);
  for (int64_t id = 0; id < 899; ++id) {
    EXPECT_EQ(read_sample_of(*data.train, id).tokens[0], id % 256);
    EXPECT_EQ(read_sample_of(*data.train, id).targets[0], (id + 1) % 256);
  }
}

TEST(Text, TakesAFileOrAFolderWithExactlyOne) {
  const TemporaryFolder folder;
  const auto open_in = [](const std::string& path) {
    return open_data({.name = "text", .directory = path, .sequence_length = 4});
  };
  const auto refusal = [&](const std::string& path) {
    return thrown_message<DataError>([&] { open_in(path); });
  };
  EXPECT_THAT(refusal(folder.path()), AllOf(HasSubstr("has 0 .txt files"), HasSubstr("exactly 1")));
  const std::string first = join_path(folder.path(), "a.txt");
  write_bytes(first, "in the beginning was the word");
  write_bytes(join_path(folder.path(), "other.md"), "x");
  EXPECT_EQ(open_in(folder.path()).digest, open_in(first).digest);
  EXPECT_EQ(open_in(folder.path()).files[0].path, first);
  write_bytes(join_path(folder.path(), "b.txt"), "x");
  EXPECT_THAT(refusal(folder.path()), AllOf(HasSubstr("has 2 .txt files"), HasSubstr("a.txt")));
  EXPECT_THAT(refusal(join_path(folder.path(), "other.md")), HasSubstr(".txt"));
  EXPECT_THAT(refusal("/does/not/exist"), HasSubstr("does not exist"));
}

TEST(Text, RefusesTooShortTextsWithBothNumbers) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "a.txt");
  const auto open_length = [&path](int64_t length) {
    return open_data({.name = "text", .directory = path, .sequence_length = length});
  };
  write_bytes(path, "");
  EXPECT_THAT(thrown_message<DataError>([&] { open_length(8); }),
              AllOf(HasSubstr(path), HasSubstr("has 0 bytes"), HasSubstr("needs 9")));
  write_bytes(path, std::string(20, 'x'));
  EXPECT_THAT(thrown_message<DataError>([&] { open_length(18); }),
              AllOf(HasSubstr("has 20 bytes, 18 of them"), HasSubstr("needs 19")));
  EXPECT_EQ(open_length(17).train->size(), 1);
  EXPECT_EQ(open_length(17).eval->size(), 0);
  EXPECT_THAT(thrown_message<ConfigError>([&] { open_length(0); }),
              HasSubstr("sequence_length is 0, must be in [1,"));
}

TEST(Synthetic, EncodesTheIdInPixels) {
  const OpenedData data = open_data(
      {.name = "synthetic", .synthetic_samples = 1000, .image_shape = {3, 5, 5}, .num_classes = 7});
  EXPECT_EQ(data.train->size(), 1000);
  EXPECT_EQ(data.eval->size(), 100);
  EXPECT_EQ(data.train->spec().mean.size(), 3U);
  for (const int64_t id : {0, 255, 256, 999}) {
    const Sample sample = read_sample_of(*data.train, id);
    EXPECT_EQ(sample.tokens[0], id);  // the first 8 pixels
    EXPECT_EQ(sample.targets[0], id % 7);
  }
  EXPECT_EQ(read_sample_of(*data.eval, 99).tokens[0], 1099);
  EXPECT_NE(read_sample_of(*data.train, 1).pixels[74], read_sample_of(*data.train, 2).pixels[74]);
  const SplitSurvey survey = survey_split(*data.train, "train");
  // 25,000 pixels a channel, 1,000 of the first channel's code digits instead of uniform bytes.
  EXPECT_NEAR(survey.mean[2], 0.5, 0.01);
  EXPECT_NEAR(survey.stddev[2], 0.2887, 0.01);
}

TEST(Synthetic, CountsThroughItsTokens) {
  const OpenedData data = open_data({.name = "synthetic",
                                     .sequence_length = 6,
                                     .synthetic_samples = 50,
                                     .is_tokens = true,
                                     .num_classes = 11});
  for (int64_t id = 0; id < 50; ++id) {
    const Sample sample = read_sample_of(*data.train, id);
    for (int64_t t = 0; t < 6; ++t) {
      EXPECT_EQ(sample.tokens[static_cast<size_t>(t)], (id * 6 + t) % 11);
      EXPECT_EQ(sample.targets[static_cast<size_t>(t)], (id * 6 + t + 1) % 11);
    }
  }
  EXPECT_EQ(read_sample_of(*data.eval, 4).tokens[0], 54 * 6 % 11);
}

TEST(Synthetic, RefusesSizesOutOfRange) {
  EXPECT_THAT(thrown_message<ConfigError>([] {
                open_data({.name = "synthetic", .synthetic_samples = 0, .image_shape = {1, 2, 2}});
              }),
              HasSubstr("synthetic_samples is 0, must be in [1,"));
  EXPECT_THAT(thrown_message<ConfigError>([] {
                open_data({.name = "synthetic", .image_shape = {1, 2, 2}, .num_classes = -1});
              }),
              HasSubstr("num_classes is -1"));
  EXPECT_THAT(thrown_message<ConfigError>([] { open_data({.name = "synthetic"}); }),
              HasSubstr("image_shape has 0 sizes, must have 3"));
}

TEST(OpenData, RefusesUnknownNamesWithTheNearest) {
  EXPECT_THAT(thrown_message<ConfigError>([] { open_data({.name = "fashon_mnist"}); }),
              AllOf(HasSubstr("\"fashon_mnist\""), HasSubstr("digits, fashion_mnist, image_folder, mnist"),
                    HasSubstr("did you mean \"fashion_mnist\"?")));
}

TEST(OpenData, LimitsTheSplits) {
  const OpenedData data =
      open_data({.name = "digits", .max_train_samples = 10, .max_eval_samples = 3});
  EXPECT_EQ(data.train->size(), 10);
  EXPECT_EQ(data.eval->size(), 3);
  EXPECT_THROW(read_sample_of(*data.train, 10), InternalError);
  const OpenedData all = open_data({.name = "digits", .max_train_samples = 1'000'000});
  EXPECT_EQ(all.train->size(), 1498);
  EXPECT_EQ(read_sample_of(*all.train, 9).pixels, read_sample_of(*data.train, 9).pixels);
  EXPECT_THAT(
      thrown_message<ConfigError>([] { open_data({.name = "digits", .max_train_samples = -1}); }),
      HasSubstr("max_train_samples is -1, must be >= 0"));
}

TEST(OpenData, ChangesTheDigestWithWhateverChangesTheSamples) {
  const auto digest = [](const DataRequest& request) { return open_data(request).digest; };
  const std::vector<std::string> digests = {
      digest({.name = "digits"}),
      digest({.name = "digits", .max_train_samples = 10}),
      digest({.name = "digits", .max_eval_samples = 10}),
      digest({.name = "text"}),
      digest({.name = "text", .sequence_length = 64}),
      digest({.name = "synthetic", .is_tokens = true}),
      digest({.name = "synthetic", .is_tokens = true, .num_classes = 11}),
      digest({.name = "synthetic", .image_shape = {1, 2, 2}}),
      digest({.name = "synthetic",
              .max_train_samples = 5,
              .max_eval_samples = 1,
              .synthetic_samples = 10,
              .image_shape = {1, 2, 2}}),
      digest({.name = "synthetic",
              .max_train_samples = 5,
              .max_eval_samples = 1,
              .synthetic_samples = 20,
              .image_shape = {1, 2, 2}})};
  for (size_t i = 0; i < digests.size(); ++i) {
    EXPECT_EQ(digests[i].size(), 64U);
    for (size_t k = 0; k < i; ++k) EXPECT_NE(digests[i], digests[k]) << i << " and " << k;
  }
  EXPECT_EQ(digests[0], digest({.name = "digits"}));
  EXPECT_EQ(digests[0], digest({.name = "digits", .max_train_samples = 5000}));
}

TEST(OpenData, RefusesReadsOutsideASplit) {
  const OpenedData data = open_data({.name = "digits"});
  EXPECT_THAT(thrown_message<InternalError>([&] { read_sample_of(*data.eval, 299); }),
              AllOf(HasSubstr("sample 299"), HasSubstr("has 299")));
  EXPECT_THROW(read_sample_of(*data.train, -1), InternalError);
  std::vector<unsigned char> pixels(10);
  int64_t label = 0;
  EXPECT_THAT(thrown_message<InternalError>([&] {
                data.train->read(0, pixels, {&label, 1});
              }),
              AllOf(HasSubstr("10 feature bytes"), HasSubstr("784")));
}

}  // namespace
}  // namespace assay::data
