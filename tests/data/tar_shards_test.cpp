#include "data/tar_shards.h"

#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/image_samples.h"
#include "data/loader.h"
#include "data/pack.h"
#include "data/sampler.h"
#include "tests/data/tar_files.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TarShards : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return join_path(folder_.path(), name); }
  std::string written(const std::string& name, const std::string& content) const {
    write_bytes(at(name), content);
    return at(name);
  }
  std::string refusal(const std::string& content) const {
    const std::string path = written("x.tar", content);
    return thrown_message<DataError>([&] { read_tar_shard(path); });
  }
  // Shards of the given sizes, samples counted through.
  std::unique_ptr<EncodedImages> images(const std::vector<int64_t>& sizes) const {
    std::vector<std::string> paths;
    int64_t first = 0;
    for (const int64_t size : sizes) {
      paths.push_back(written(cat("s-", paths.size(), ".tar"), tar_shard(first, size)));
      first += size;
    }
    return make_tar_images(read_tar_shards(paths));
  }

  TemporaryFolder folder_;
};

// "image <n>" -> n as four bytes.
std::unique_ptr<Dataset> numbered(std::unique_ptr<EncodedImages> images) {
  SampleSpec spec;
  spec.feature_shape = {1, 2, 2};
  spec.num_classes = 10;
  return make_image_samples(std::move(images), spec,
                            [](std::string_view file, const std::string& origin, int64_t id,
                               std::span<unsigned char> pixels) {
                              const auto number = parse_int64(file.substr(file.find(' ') + 1));
                              if (!file.starts_with("image ") || !number || *number != id) {
                                throw DataError(cat(origin, ": not the image ", id));
                              }
                              for (size_t i = 0; i < pixels.size(); ++i) {
                                pixels[i] = static_cast<unsigned char>(*number >> (8 * i));
                              }
                            });
}

TEST_F(TarShards, GiveImagesAndLabelsByTheirNumber) {
  const auto found = images({3, 1, 2});
  ASSERT_EQ(found->size(), 6);
  std::string bytes;
  for (int64_t id = 0; id < 6; ++id) {
    found->read(id, bytes);
    EXPECT_EQ(bytes, cat("image ", id));
    EXPECT_EQ(found->label(id), id % 10);
  }
  EXPECT_THAT(found->origin(3), HasSubstr("s-1.tar: folder/000003.jpg"));
}

TEST_F(TarShards, TakeLabelsFromJsonToo) {
  const std::string path = written(
      "x.tar", tar_member("a.b/one.PNG", "1") + tar_member("a.b/one.json", R"({"label": 7})") +
                   tar_member("two.jpeg", "2") + tar_member("two.seg.png", "mask") +
                   tar_member("two.json", R"({"cls": 3})") + tar_member("readme.txt", "-") +
                   tar_member("meta.json", "{}") + tar_end());
  const TarShard shard = read_tar_shard(path);
  ASSERT_EQ(shard.samples.size(), 2U);
  EXPECT_EQ(shard.samples[0].label, 7);
  EXPECT_EQ(shard.samples[0].name, "a.b/one.PNG");
  EXPECT_EQ(shard.samples[1].label, 3);
}

TEST_F(TarShards, RefuseSamplesThatAreNotWhole) {
  EXPECT_THAT(refusal(tar_member("k.jpg", "1") + tar_end()),
              AllOf(HasSubstr("x.tar"), HasSubstr("\"k\""), HasSubstr("no label")));
  EXPECT_THAT(refusal(tar_member("k.cls", "1") + tar_end()), HasSubstr("no image"));
  EXPECT_THAT(refusal(tar_member("k.jpg", "1") + tar_member("k.png", "1") + tar_end()),
              HasSubstr("both k.jpg and k.png"));
  EXPECT_THAT(refusal(tar_member("k.jpg", "1") + tar_member("k.cls", "1") +
                      tar_member("l.jpg", "1") + tar_member("l.cls", "1") +
                      tar_member("k.jpg", "1") + tar_member("k.cls", "1") + tar_end()),
              AllOf(HasSubstr("\"k\""), HasSubstr("occurs twice")));
}

TEST_F(TarShards, RefuseLabelsThatAreNoNumbers) {
  for (const char* label : {"", "cat", "-1", "3000000000", "1.5"}) {
    EXPECT_THAT(refusal(tar_member("k.jpg", "1") + tar_member("k.cls", label) + tar_end()),
                AllOf(HasSubstr("k.cls"), HasSubstr(quoted(label))));
  }
  for (const char* json : {"{}", "[1]", R"({"label": -1})", R"({"label": "1"})", "{"}) {
    EXPECT_THAT(refusal(tar_member("k.jpg", "1") + tar_member("k.json", json) + tar_end()),
                HasSubstr("\"k\""));
  }
}

TEST_F(TarShards, WithLabelsOutsideTheModelsClassesAreRefused) {
  const auto found = images({4});
  EXPECT_EQ(checked_num_classes(*found, *images({}), 0), 4);
  EXPECT_THAT(thrown_message<DataError>([&] { checked_num_classes(*found, *images({}), 3); }),
              AllOf(HasSubstr("000003.jpg"), HasSubstr("label is 3"), HasSubstr("[0, 2]")));
}

TEST_F(TarShards, CutOffWhileInUseGiveAnError) {
  const auto found = images({2});
  write_bytes(at("s-0.tar"), "short");
  std::string bytes;
  EXPECT_THAT(thrown_message<DataError>([&] { found->read(1, bytes); }),
              AllOf(HasSubstr("s-0.tar"), HasSubstr("ends before")));
}

TEST_F(TarShards, HaveADigestOfNamesSizesAndLabels) {
  const std::string first = read_tar_shard(written("a.tar", tar_shard(0, 3))).index_digest;
  EXPECT_EQ(read_tar_shard(written("b.tar", tar_shard(0, 3))).index_digest, first);
  EXPECT_NE(read_tar_shard(written("c.tar", tar_shard(0, 3, 2))).index_digest, first);
  EXPECT_NE(read_tar_shard(written("d.tar", tar_shard(1, 3))).index_digest, first);
}

DataRequest request_for(const std::string& name, const std::string& directory) {
  DataRequest request;
  request.name = name;
  request.directory = directory;
  return request;
}

// The first four bytes of a file are its pixels.
ImageDecoding first_bytes(const DataRequest&) {
  ImageDecoding decoding;
  decoding.spec.feature_shape = {1, 2, 2};
  decoding.plain = [](std::string_view file, const std::string&, int64_t,
                      std::span<unsigned char> pixels) {
    std::copy_n(file.end() - 4, 4, pixels.begin());
  };
  decoding.recipe = "last bytes";
  return decoding;
}

TEST_F(TarShards, OpenAsADataSetWithBothSplits) {
  written("d/x-train-0.tar", tar_shard(1000, 3));
  written("d/x-train-1.tar", tar_shard(1003, 2));
  written("d/x-val-0.tar", tar_shard(2000, 4));
  const DataRequest request = request_for("tar_shards", at("d"));
  const OpenedSource source = open_tar_files(request, first_bytes);
  EXPECT_EQ(source.train->size(), 5);
  EXPECT_EQ(source.eval->size(), 4);
  EXPECT_EQ(source.train->spec().num_classes, 5);
  EXPECT_EQ(source.files.size(), 3U);
  std::vector<unsigned char> pixels(4);
  std::vector<int64_t> targets(1);
  source.train->read(4, pixels, targets);
  EXPECT_EQ(std::string(pixels.begin(), pixels.end()), "1004");
  EXPECT_EQ(targets[0], 4);
  DataRequest limited = request;
  limited.class_limit = 4;
  EXPECT_THAT(thrown_message<DataError>([&] { open_tar_files(limited, first_bytes); }),
              AllOf(HasSubstr("x-train-1.tar: folder/001004.jpg"), HasSubstr("label is 4")));
}

TEST_F(TarShards, WithoutImagesAreRefused) {
  written("d/a.tar", tar_member("readme.txt", "none") + tar_end());
  const DataRequest request = request_for("tar_shards", at("d"));
  EXPECT_THAT(thrown_message<DataError>([&] { open_tar_files(request, first_bytes); }),
              HasSubstr("no images to train on"));
}

TEST_F(TarShards, GoIntoPackedShardsWithTheirOwnBytes) {
  written("d/train.tar", tar_shard(1000, 7));
  written("d/val.tar", tar_shard(2000, 2));
  OpenedSource source = open_tar_files(request_for("tar_shards", at("d")), first_bytes);
  OpenedData data;
  data.name = "tar_shards";
  data.digest = "d";
  data.train = std::move(source.train);
  data.eval = std::move(source.eval);
  PackRequest pack;
  pack.output_dir = at("packed");
  pack.shard_samples = 3;
  pack.is_original = true;
  pack_data(data, pack);
  const DataRequest request = request_for("packed", at("packed"));
  const OpenedSource packed = open_packed_files(request, first_bytes);
  ASSERT_EQ(packed.train->size(), 7);
  ASSERT_EQ(packed.eval->size(), 2);
  std::string bytes;
  for (int64_t id = 0; id < 7; ++id) {
    packed.train->images()->read(id, bytes);
    EXPECT_EQ(bytes, cat("image ", 1000 + id));
    EXPECT_EQ(packed.train->images()->label(id), id % 10);
  }
}

struct World {
  int64_t ranks = 1;
  int64_t workers = 0;
};

// Ids of one epoch over all ranks, read through real loaders, which check that id and image agree.
std::multiset<int64_t> epoch_ids(const Dataset& dataset, const World& world, uint64_t seed,
                                 std::set<int64_t>* steps) {
  std::multiset<int64_t> ids;
  for (int64_t rank = 0; rank < world.ranks; ++rank) {
    const Sampler sampler({.dataset_size = dataset.size(),
                           .micro_batch_size = 2,
                           .world_size = world.ranks,
                           .rank = rank,
                           .seed = seed});
    DataLoader loader(dataset, sampler, {.num_workers = world.workers, .prefetch_factor = 2});
    loader.start({});
    steps->insert(sampler.steps_per_epoch());
    for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
      const Batch batch = loader.next();
      ids.insert(batch.ids.begin(), batch.ids.end());
    }
  }
  return ids;
}

TEST_F(TarShards, GiveEverySampleOnceWhateverTheShardsRanksAndWorkers) {
  const uint32_t seed = 11;
  SCOPED_TRACE(cat("seed ", seed));
  std::mt19937 random(seed);
  // Fewer shards than ranks x workers, one shard for four ranks, empty and uneven ones.
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{5, 4, 4}, {13}, {1, 0, 30, 2}, {3, 3, 3, 3, 3, 3, 3}}) {
    const std::unique_ptr<Dataset> dataset = numbered(images(sizes));
    std::multiset<int64_t> all;
    for (int64_t id = 0; id < dataset->size(); ++id) all.insert(id);
    for (const World world : {World{1, 0}, World{2, 2}, World{4, 1}, World{3, 3}}) {
      std::set<int64_t> steps;
      EXPECT_EQ(epoch_ids(*dataset, world, random(), &steps), all)
          << sizes.size() << " shards, " << world.ranks << " ranks";
      EXPECT_EQ(steps.size(), 1U) << "every rank must do as many steps";
    }
  }
}

}  // namespace
}  // namespace assay::data
