#include "data/cifar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/dataset_guess.h"
#include "tests/data/idx_files.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Records from `first` on: label n % classes; pixel (c, y, x) is n + 64 c + y + 2 x.
std::string records(const CifarKind& kind, int first, int count) {
  std::string bytes;
  for (int n = first; n < first + count; ++n) {
    if (kind.label_bytes == 2) bytes += static_cast<char>(19);
    bytes += static_cast<char>(n % static_cast<int>(kind.num_classes));
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < 32; ++y) {
        for (int x = 0; x < 32; ++x) bytes += static_cast<char>(n + 64 * c + y + 2 * x);
      }
    }
  }
  return bytes;
}

class Cifar : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return join_path(folder_.path(), name); }
  void write_ten(const std::string& folder) const {
    create_directories(at(folder));
    for (int i = 1; i <= 5; ++i) {
      write_bytes(at(cat(folder, "/data_batch_", i, ".bin")), records(kCifar10, 4 * (i - 1), 4));
    }
    write_bytes(at(folder + "/test_batch.bin"), records(kCifar10, 100, 3));
  }
  void write_hundred(const std::string& folder) const {
    create_directories(at(folder));
    write_bytes(at(folder + "/train.bin"), records(kCifar100, 95, 10));
    write_bytes(at(folder + "/test.bin"), records(kCifar100, 0, 2));
  }
  DataRequest request(const std::string& name, const std::string& folder) const {
    DataRequest made;
    made.name = name;
    made.directory = at(folder);
    return made;
  }

  TemporaryFolder folder_;
};

struct CifarSample {
  std::vector<unsigned char> pixels = std::vector<unsigned char>(kCifarPixels);
  std::vector<int64_t> target = {-1};
};

CifarSample plain(const Dataset& dataset, int64_t id) {
  CifarSample sample;
  dataset.read(id, sample.pixels, sample.target);
  return sample;
}

CifarSample augmented(const Dataset& dataset, int64_t id, const ReadContext& context) {
  CifarSample sample;
  dataset.read_for_training(context, id, sample.pixels, sample.target);
  return sample;
}

TEST_F(Cifar, GivesTheImagesOfEveryFileInOrder) {
  write_ten("a");
  const OpenedData data = open_data(request("cifar10", "a"));
  ASSERT_EQ(data.train->size(), 20);
  ASSERT_EQ(data.eval->size(), 3);
  EXPECT_EQ(data.train->spec().feature_shape, (std::vector<int64_t>{3, 32, 32}));
  EXPECT_EQ(data.files.size(), 6U);
  for (int64_t id = 0; id < 20; ++id) {
    const CifarSample sample = plain(*data.train, id);
    EXPECT_EQ(sample.target[0], id % 10);
    EXPECT_EQ(sample.pixels[0], id);
    EXPECT_EQ(sample.pixels[1024 + 32 + 1], id + 64 + 1 + 2);
  }
  EXPECT_EQ(plain(*data.eval, 0).pixels[0], 100);
}

TEST_F(Cifar, TakesTheFineLabelsOfAHundredClasses) {
  write_hundred("b/cifar-100-binary");
  const OpenedData data = open_data(request("cifar100", "b"));
  ASSERT_EQ(data.train->size(), 10);
  EXPECT_EQ(data.train->spec().num_classes, 100);
  EXPECT_EQ(plain(*data.train, 0).target[0], 95);
  EXPECT_EQ(plain(*data.train, 9).target[0], 4);
}

TEST_F(Cifar, FilesOfTheOtherKindAreRefusedWithBothSizes) {
  CifarImages images;
  const auto refusal = [&images](const std::string& bytes, const CifarKind& kind) {
    return thrown_message<DataError>([&] { add_cifar_images(bytes, "f.bin", kind, images); });
  };
  EXPECT_THAT(refusal(records(kCifar100, 0, 2), kCifar10),
              AllOf(HasSubstr("f.bin has 6148 bytes"), HasSubstr("3073"), HasSubstr("3074"),
                    HasSubstr("--dataset cifar100")));
  EXPECT_THAT(refusal(records(kCifar10, 0, 2), kCifar100),
              AllOf(HasSubstr("6146 bytes"), HasSubstr("3074"), HasSubstr("3073"),
                    HasSubstr("--dataset cifar10")));
  EXPECT_THAT(refusal(records(kCifar10, 0, 2).substr(1), kCifar10),
              AllOf(HasSubstr("6145 bytes"), HasSubstr("nor is it one of 3074")));
  EXPECT_THAT(refusal("", kCifar10), HasSubstr("0 bytes"));
}

TEST_F(Cifar, LabelsOutOfRangeAreRefusedByRecord) {
  std::string bytes = records(kCifar10, 0, 3);
  bytes[2 * 3073] = 10;
  CifarImages images;
  EXPECT_THAT(
      thrown_message<DataError>([&] { add_cifar_images(bytes, "f.bin", kCifar10, images); }),
      AllOf(HasSubstr("f.bin"), HasSubstr("record 2 is 10"), HasSubstr("[0, 9]")));
}

TEST_F(Cifar, FoldersThatDoNotFitAreRefused) {
  write_ten("a");
  write_hundred("b");
  EXPECT_THAT(thrown_message<DataError>([&] { open_data(request("cifar10", "b")); }),
              AllOf(HasSubstr("data_batch_1.bin"), HasSubstr("--dataset cifar100")));
  EXPECT_THAT(thrown_message<DataError>([&] { open_data(request("cifar100", "a")); }),
              AllOf(HasSubstr("train.bin"), HasSubstr("--dataset cifar10")));
  remove_file(at("a/data_batch_3.bin"));
  EXPECT_THAT(thrown_message<DataError>([&] { open_data(request("cifar10", "a")); }),
              HasSubstr("not all of"));
  DataRequest empty;
  empty.name = "cifar10";
  EXPECT_THAT(thrown_message<ConfigError>([&] { open_data(empty); }),
              HasSubstr("data_dir is empty"));
}

TEST_F(Cifar, ModelsOfAnotherSizeAreRefused) {
  write_ten("a");
  DataRequest asked = request("cifar10", "a");
  asked.image_shape = {3, 224, 224};
  EXPECT_THAT(thrown_message<ConfigError>([&] { open_data(asked); }),
              AllOf(HasSubstr("3 32 32"), HasSubstr("3 224 224")));
}

TEST_F(Cifar, TrainingMovesAndMirrorsWithinThePadding) {
  write_ten("a");
  const OpenedData data = open_data(request("cifar10", "a"));
  const CifarSample original = plain(*data.train, 7);
  int flips = 0;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    const CifarSample moved = augmented(*data.train, 7, {11, epoch});
    EXPECT_EQ(moved.target[0], 7);
    int matches = 0;
    for (int down = -4; down <= 4; ++down) {
      for (int right = -4; right <= 4; ++right) {
        for (const bool is_flipped : {false, true}) {
          bool is_same = true;
          for (int i = 0; i < 3072 && is_same; ++i) {
            const int y = i / 32 % 32 + down;
            const int x = (is_flipped ? 31 - i % 32 : i % 32) + right;
            const bool is_inside = x >= 0 && x < 32 && y >= 0 && y < 32;
            const int from = i / 1024 * 1024 + y * 32 + x;
            is_same = moved.pixels[static_cast<size_t>(i)] ==
                      (is_inside ? original.pixels[static_cast<size_t>(from)] : 0);
          }
          matches += is_same ? 1 : 0;
          flips += is_same && is_flipped ? 1 : 0;
        }
      }
    }
    EXPECT_EQ(matches, 1) << epoch;
  }
  EXPECT_GT(flips, 8);  // of 40, half expected: below it once in 10^5
  EXPECT_LT(flips, 32);
}

TEST_F(Cifar, EvaluationAndPackingSeeTheImageAsStored) {
  write_ten("a");
  DataRequest asked = request("cifar10", "a");
  const OpenedData data = open_data(asked);
  EXPECT_EQ(augmented(*data.eval, 1, {1, 1}).pixels, plain(*data.eval, 1).pixels);
  asked.augment = false;
  const OpenedData still = open_data(asked);
  EXPECT_EQ(augmented(*still.train, 1, {1, 1}).pixels, plain(*data.train, 1).pixels);
  EXPECT_NE(still.digest, data.digest);
}

TEST_F(Cifar, FoldersAreRecognised) {
  write_ten("a");
  write_hundred("b/cifar-100-binary");
  write_bytes(at("a/batches.meta.txt"), "airplane\n");
  EXPECT_EQ(guessed_request(at("a"), "").name, "cifar10");
  EXPECT_EQ(guessed_request(at("b"), "").name, "cifar100");
}

}  // namespace
}  // namespace assay::data
