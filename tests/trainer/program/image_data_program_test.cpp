// Training on image files and tar shards, end to end: the same run whatever loads it, after a kill,
// and on several ranks.
#include <algorithm>
#include <csignal>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/data/golden_images.h"
#include "tests/support/ranks.h"
#include "tests/trainer/program/train_program.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

class ImageData : public TrainProgram {
 protected:
  // JPEG and PNG of many kinds, told from each other by nothing: this is about bytes, not learning.
  static std::vector<std::pair<std::string, std::string>> images() {
    std::vector<std::pair<std::string, std::string>> images;
    for (const std::string name : {"jpeg_444", "jpeg_420", "jpeg_gray", "jpeg_progressive",
                                   "jpeg_cmyk", "png_gray", "png_rgb", "png_rgba", "png_palette",
                                   "png_rgb_16", "png_interlaced", "jpeg_422", "jpeg_restarts"}) {
      const std::string ending = name.starts_with("jpeg") ? ".jpg" : ".png";
      images.emplace_back(name + ending, data::golden_image("small", name));
    }
    return images;
  }
  void make_folder() const {
    for (const std::string part : {"train", "val"}) {
      size_t index = 0;
      for (const auto& [name, bytes] : images()) {
        const std::string folder = path(cat("set/", part, index++ % 2 == 0 ? "/even" : "/odd"));
        create_directories(folder);
        write_file_durably(join_path(folder, name), bytes, "result");
      }
    }
  }
  // Three shards of 5, 4 and 4 samples ("0003.jpg" and "0003.cls").
  void make_shards() const {
    create_directories(path("shards"));
    size_t index = 0;
    std::vector<Words> members(3);
    for (const auto& [name, bytes] : images()) {
      const std::string stem = cat(index < 10 ? "000" : "00", index);
      const std::string image = stem + name.substr(name.rfind('.'));
      write_file_durably(path(image), bytes, "result");
      write_file_durably(path(stem + ".cls"), cat(index % 2), "result");
      Words& list = members[index++ % 3];
      list.insert(list.end(), {image, stem + ".cls"});
    }
    for (size_t shard = 0; shard < members.size(); ++shard) {
      for (const char* part : {"train", "val"}) {
        Words command = {"/bin/tar", "cf", path(cat("shards/", part, "-00000", shard, ".tar"))};
        command.insert(command.end(), members[shard].begin(), members[shard].end());
        const auto end =
            support::run_program({.command = command, .working_directory = folder_.path()});
        ASSERT_EQ(end.code, 0) << end.output;
      }
    }
  }
  static Words words(const std::string& run_dir, const Options& changes = {}) {
    return words_of(run_dir,
                    {{"--model", "resnet20_cifar"},
                     {"--dataset", "image_folder"},
                     {"--data_dir", "set"},
                     {"model.num_classes", "2"},
                     {"model.image_size", "16"},
                     {"--batch_size", "2"},
                     {"--max_steps", "14"},
                     {"--save_steps", "4"},
                     {"--eval_steps", "7"},
                     {"--log_sample_ids", "true"},
                     {"--num_workers", "1"},
                     {"--num_threads", "1"}},
                    changes);
  }
};

TEST_F(ImageData, IsTheSameRunWhateverLoadsItAndAfterAKill) {
  make_folder();
  const auto control = train(words("control"));
  ASSERT_EQ(control.code, 0) << control.output;
  for (const auto& [workers, prefetch] :
       std::vector<std::pair<int, int>>{{0, 1}, {1, 8}, {4, 1}, {4, 8}, {16, 2}}) {
    const std::string run_dir = cat("w", workers, "-p", prefetch);
    const auto end = train(
        words(run_dir, {{"--num_workers", cat(workers)}, {"--prefetch_factor", cat(prefetch)}}));
    ASSERT_EQ(end.code, 0) << end.output;
    EXPECT_EQ(result_of(path(run_dir)).state_digest, result_of(path("control")).state_digest)
        << run_dir;
  }
  for (const int hit : {3, 9, 13}) {
    const std::string run_dir = cat("killed-", hit);
    const Options options = {{"--num_workers", "3"}};
    EXPECT_EQ(train(words(run_dir, options), cat("train.backward:", hit, "=kill")).code,
              128 + SIGKILL);
    const auto end = train(resumed(words(run_dir, options)));
    ASSERT_EQ(end.code, 0) << end.output;
    expect_same_run(path("control"), path(run_dir));
  }
}

TEST_F(ImageData, DrawsOtherCropsInAnotherEpochAndWithAnotherSeed) {
  make_folder();
  ASSERT_EQ(train(words("a", {{"--seed", "1"}})).code, 0);
  ASSERT_EQ(train(words("b", {{"--seed", "1"}, {"--data.augment", "false"}})).code, 0);
  EXPECT_NE(result_of(path("a")).state_digest, result_of(path("b")).state_digest);
}

TEST_F(ImageData, NamesABrokenFileAndEndsWithThree) {
  make_folder();
  write_file_durably(path("set/train/odd/broken.jpg"), "not an image", "result");
  const auto end = train(words("run"));
  EXPECT_EQ(end.code, 3);
  EXPECT_THAT(end.output, HasSubstr("set/train/odd/broken.jpg"));
}

// Fewer shards than loader threads and ranks, 13 samples, micro-batches of 2 on 2 and 4 ranks:
// nobody waits for anybody, and every sample is used once an epoch.
TEST_F(ImageData, UsesEverySampleOfFewShardsOnceOnAnyNumberOfRanks) {
  make_shards();
  for (const int64_t world_size : {2, 4}) {
    const std::string run_dir = cat("run-", world_size);
    support::RanksRequest request;
    request.program = ASSAY_TRAIN_PROGRAM;
    request.words = words(run_dir, {{"--dataset", "tar_shards"},
                                    {"--data_dir", "shards"},
                                    {"--num_workers", "2"},
                                    {"--eval_steps", "0"},
                                    {"--save_steps", "0"},
                                    {"--max_steps", world_size == 2 ? "4" : "2"}});
    request.words.insert(request.words.begin(), "train");
    request.world_size = world_size;
    request.working_directory = folder_.path();
    const auto ends = support::run_ranks(request);
    for (const auto& end : ends) ASSERT_EQ(end.code, 0) << support::ends_text(ends);
    std::multiset<int64_t> used;
    for (int64_t rank = 0; rank < world_size; ++rank) {
      const std::string text = read_file(path(cat(run_dir, "/ids-rank", rank, ".jsonl")));
      for (const std::string& line : split(text, '\n')) {
        if (line.empty()) continue;
        const auto json = nlohmann::json::parse(line);
        for (const auto& id : json.at("ids")) used.insert(id.get<int64_t>());
      }
    }
    // 4 steps of 4, or 2 of 8, are an epoch of 13.
    std::multiset<int64_t> once;
    for (int64_t id = 0; id < 13; ++id) once.insert(id);
    EXPECT_EQ(used, once) << world_size << " ranks";
  }
}

}  // namespace
}  // namespace assay
