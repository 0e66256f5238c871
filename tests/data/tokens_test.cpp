#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "tests/data/thrown_message.h"
#include "tests/data/token_files.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Tokens : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::vector<int64_t>& ids) const {
    write_bytes(at(name), token_bytes<uint16_t>(ids));
  }
  std::string at(const std::string& name) const { return join_path(folder_.path(), name); }
  DataRequest request(const std::string& directory, int64_t sequence_length = 4) const {
    DataRequest request;
    request.name = "tokens";
    request.directory = directory;
    request.sequence_length = sequence_length;
    return request;
  }

  TemporaryFolder folder_;
};

struct Window {
  std::vector<int64_t> inputs;
  std::vector<int64_t> targets;
};

Window window_of(const Dataset& dataset, int64_t id) {
  const auto length = static_cast<size_t>(dataset.spec().targets_per_sample);
  Window window{std::vector<int64_t>(length), std::vector<int64_t>(length)};
  dataset.read(id,
               {reinterpret_cast<unsigned char*>(window.inputs.data()), length * sizeof(int64_t)},
               window.targets);
  return window;
}

TEST_F(Tokens, AreCutIntoWindowsWithoutOverlap) {
  write("train.bin", counting(14));
  write("val.bin", counting(9, 100));
  const OpenedData data = open_data(request(folder_.path()));
  ASSERT_EQ(data.train->size(), 3);  // (14 - 1) / 4
  ASSERT_EQ(data.eval->size(), 2);
  EXPECT_EQ(window_of(*data.train, 0).inputs, counting(4));
  EXPECT_EQ(window_of(*data.train, 2).inputs, counting(4, 8));
  EXPECT_EQ(window_of(*data.train, 2).targets, counting(4, 9));
  EXPECT_EQ(window_of(*data.eval, 1).targets, counting(4, 105));
  EXPECT_EQ(data.train->spec().num_classes, 109);
}

TEST_F(Tokens, OfSeveralFilesComeInOrderAndNeverCrossFiles) {
  write("x_train_000.bin", counting(9));
  write("x_train_001.bin", counting(3, 50));  // too short for one window
  write("x_train_002.bin", counting(6, 200));
  write("x_val_000.bin", counting(5, 90));
  for (const std::string& directory :
       {folder_.path(), at("x_train_{000..002}.bin"), at("x_train_*.bin")}) {
    const OpenedData data = open_data(request(directory));
    ASSERT_EQ(data.train->size(), 3) << directory;
    EXPECT_EQ(window_of(*data.train, 1).targets, counting(4, 5));
    EXPECT_EQ(window_of(*data.train, 2).inputs, counting(4, 200));
    EXPECT_EQ(data.eval->size(), 1) << directory;
  }
}

TEST_F(Tokens, OfOneFileHaveNothingHeldOut) {
  write("all.bin", counting(9));
  const OpenedData data = open_data(request(at("all.bin")));
  EXPECT_EQ(data.train->size(), 2);
  EXPECT_EQ(data.eval->size(), 0);
}

TEST_F(Tokens, HaveADigestOfTheirContentAlone) {
  write("train.bin", counting(20));
  const std::string first = open_data(request(folder_.path())).digest;
  write_bytes(at("copy/train.bin"), token_bytes<uint16_t>(counting(20)));
  DataRequest other = request(at("copy"));
  other.class_limit = 50257;
  EXPECT_EQ(open_data(other).digest, first);
  write("train.bin", counting(20, 1));
  EXPECT_NE(open_data(request(folder_.path())).digest, first);
}

TEST_F(Tokens, OutsideTheVocabularyAreRefusedBeforeAnythingIsRead) {
  write("train.bin", counting(20));
  write("val.bin", {1, 2, 3, 4, 256, 5});
  DataRequest limited = request(folder_.path());
  limited.class_limit = 256;
  EXPECT_THAT(thrown_message<DataError>([&] { open_data(limited); }),
              AllOf(HasSubstr("val.bin: token 4 is 256"), HasSubstr("[0, 255]")));
}

TEST_F(Tokens, TooFewForOneWindowAreRefusedWithBothNumbers) {
  write("train.bin", counting(4));
  EXPECT_THAT(thrown_message<DataError>([&] { open_data(request(folder_.path())); }),
              AllOf(HasSubstr("4 tokens"), HasSubstr("needs 5")));
}

TEST_F(Tokens, RefuseSettingsThatMakeNoSense) {
  write("train.bin", counting(20));
  EXPECT_THAT(thrown_message<ConfigError>([&] { open_data(request(folder_.path(), 0)); }),
              HasSubstr("sequence_length is 0"));
  EXPECT_THAT(thrown_message<ConfigError>([&] { open_data(request("")); }),
              HasSubstr("data_dir is empty"));
  EXPECT_THAT(thrown_message<DataError>([&] { open_data(request(at("nothing"))); }),
              HasSubstr("does not exist"));
}

// What a loader delivers from a position on, as one row of numbers.
std::vector<int64_t> delivered(const OpenedData& data, const Sampler& sampler, int64_t num_workers,
                               const DataPosition& position, int64_t batches) {
  DataLoader loader(*data.train, sampler, {.num_workers = num_workers, .prefetch_factor = 3});
  loader.start(position);
  std::vector<int64_t> row;
  for (int64_t i = 0; i < batches; ++i) {
    const Batch batch = loader.next();
    const auto* inputs = reinterpret_cast<const int64_t*>(batch.features());
    row.insert(row.end(), inputs, inputs + batch.feature_bytes() / sizeof(int64_t));
    row.insert(row.end(), batch.targets(), batch.targets() + batch.ids.size() * 4);
  }
  return row;
}

TEST_F(Tokens, AreDeliveredAlikeByAnyNumberOfWorkersAndAfterAResume) {
  write("train.bin", counting(401));
  const OpenedData data = open_data(request(folder_.path()));
  const Sampler sampler({.dataset_size = data.train->size(), .micro_batch_size = 7, .seed = 3});
  const std::vector<int64_t> whole = delivered(data, sampler, 0, {}, 40);
  EXPECT_EQ(delivered(data, sampler, 1, {}, 40), whole);
  EXPECT_EQ(delivered(data, sampler, 4, {}, 40), whole);
  DataPosition position;
  for (int64_t step = 0; step < 17; ++step) position = sampler.window_at(position).next;
  const std::vector<int64_t> rest = delivered(data, sampler, 2, position, 23);
  EXPECT_TRUE(std::equal(rest.rbegin(), rest.rend(), whole.rbegin()));
}

}  // namespace
}  // namespace assay::data
