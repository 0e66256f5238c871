// Folders and tar shards of image files, from the disk to the batch.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/error.h"
#include "data/encoded_images.h"
#include "data/loader.h"
#include "data/pack.h"
#include "data/survey.h"
#include "tests/data/golden_images.h"
#include "tests/data/idx_files.h"
#include "tests/data/tar_files.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ImageFolder : public ::testing::Test {
 protected:
  ImageFolder() : photo_(golden_image("large", "jpeg_420")) {}
  std::string at(const std::string& name) const { return join_path(folder_.path(), name); }
  void put(const std::string& name, const std::string& content) const {
    create_directories(parent_path(at(name)));
    write_bytes(at(name), content);
  }
  // Classes "bird" and "cat"; the same photograph everywhere.
  void put_photos(int a_class) const {
    for (int i = 0; i < a_class; ++i) {
      put(cat("train/cat/", i, ".jpg"), photo_);
      put(cat("train/bird/", i, ".JPEG"), photo_);
    }
    put("val/cat/v.jpeg", photo_);
    put("val/bird/v.png", golden_image("small", "png_rgb"));
  }
  DataRequest request() const {
    DataRequest made;
    made.name = "image_folder";
    made.directory = folder_.path();
    made.image_shape = {3, 32, 32};
    return made;
  }
  std::string refusal() const {
    return thrown_message<DataError>([this] { open_data(request()); });
  }

  TemporaryFolder folder_;
  std::string photo_;
};

std::string read_pixels(const Dataset& dataset, int64_t id) {
  std::string pixels(dataset.spec().feature_bytes(), '\0');
  int64_t target = -1;
  dataset.read(id, {reinterpret_cast<unsigned char*>(pixels.data()), pixels.size()}, {&target, 1});
  return pixels;
}

// The hash of each sample of the first `count` batches.
std::vector<std::string> hashes_of(const Dataset& dataset, int64_t num_workers, int count) {
  const Sampler sampler(
      {.dataset_size = dataset.size(), .micro_batch_size = 4, .seed = 5, .shuffle = true});
  DataLoader loader(dataset, sampler, {.num_workers = num_workers, .prefetch_factor = 2});
  loader.start({});
  std::vector<std::string> hashes;
  for (int i = 0; i < count; ++i) {
    const Batch batch = loader.next();
    const size_t bytes = batch.feature_bytes() / batch.ids.size();
    for (size_t k = 0; k < batch.ids.size(); ++k) {
      hashes.push_back(xxh3_hex(batch.features() + k * bytes, bytes));
    }
  }
  return hashes;
}

TEST_F(ImageFolder, SortsClassesAndFiles) {
  put_photos(2);
  put("train/cat/deeper/x.png", golden_image("small", "png_gray"));
  put("train/cat/.hidden.jpg", "");
  put("train/cat/notes.txt", "");
  put("train/labels.csv", "");
  const OpenedData data = open_data(request());
  const EncodedImages& images = *data.train->images();
  ASSERT_EQ(data.train->size(), 5);
  EXPECT_EQ(data.eval->size(), 2);
  EXPECT_EQ(data.train->spec().num_classes, 2);
  EXPECT_EQ(images.origin(0), at("train/bird/0.JPEG"));
  EXPECT_EQ(images.origin(4), at("train/cat/deeper/x.png"));
  EXPECT_EQ(images.label(1), 0);
  EXPECT_EQ(images.label(2), 1);
}

TEST_F(ImageFolder, WithoutHeldOutImagesHasNone) {
  put("train/a/1.jpg", photo_);
  EXPECT_EQ(open_data(request()).eval->size(), 0);
}

TEST_F(ImageFolder, OfAnotherLayoutIsRefused) {
  EXPECT_THAT(refusal(), AllOf(HasSubstr("no train/"), HasSubstr("train/<class>/")));
  put("train/1.jpg", photo_);
  EXPECT_THAT(refusal(), HasSubstr("no images to train on"));
  put("train/a/1.jpg", photo_);
  put("train/b/readme.txt", "");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("train/b"), HasSubstr("no images")));
  put("train/b/1.webp", "");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("1.webp"), HasSubstr("neither JPEG nor PNG")));
  remove_file(at("train/b/1.webp"));
  put("train/b/1.jpg", photo_);
  put("val/c/1.jpg", photo_);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("val/c"), HasSubstr("train/ has not")));
}

TEST_F(ImageFolder, WithMoreClassesThanTheModelIsRefused) {
  put_photos(1);
  DataRequest asked = request();
  asked.class_limit = 1;
  EXPECT_THAT(thrown_message<DataError>([&] { open_data(asked); }),
              AllOf(HasSubstr("train/cat/0.jpg"), HasSubstr("label is 1"), HasSubstr("[0, 0]")));
}

TEST_F(ImageFolder, HasADigestOfNamesAndTransforms) {
  put_photos(2);
  std::set<std::string> digests = {open_data(request()).digest};
  EXPECT_EQ(digests.count(open_data(request()).digest), 1U);
  DataRequest asked = request();
  asked.jpeg_scale = JpegScale::kAuto;
  digests.insert(open_data(asked).digest);
  asked.augment = false;
  digests.insert(open_data(asked).digest);
  rename_path(at("train/cat/1.jpg"), at("train/cat/2.jpg"), "");
  digests.insert(open_data(request()).digest);
  EXPECT_EQ(digests.size(), 4U);
}

TEST_F(ImageFolder, AugmentsEverySampleInItsOwnWayWhateverTheWorkers) {
  put_photos(8);
  const OpenedData data = open_data(request());
  const std::vector<std::string> alone = hashes_of(*data.train, 0, 12);  // three epochs of 16
  EXPECT_EQ(std::set<std::string>(alone.begin(), alone.end()).size(), 48U);
  for (const int64_t workers : {1, 3, 8}) EXPECT_EQ(hashes_of(*data.train, workers, 12), alone);
}

TEST_F(ImageFolder, LimitedToFewSamplesAugmentsThemAlike) {
  put_photos(4);
  DataRequest asked = request();
  const OpenedData all = open_data(asked);
  asked.max_train_samples = 4;
  const OpenedData few = open_data(asked);
  std::string a(3 * 32 * 32, '\0');
  std::string b = a;
  int64_t target = 0;
  const auto read = [&target](const Dataset& dataset, std::string& pixels) {
    dataset.read_for_training(
        {1, 2}, 3, {reinterpret_cast<unsigned char*>(pixels.data()), pixels.size()}, {&target, 1});
  };
  read(*all.train, a);
  read(*few.train, b);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, read_pixels(*all.train, 3));
}

TEST_F(ImageFolder, EvaluatesWithoutChance) {
  put_photos(4);
  const OpenedData data = open_data(request());
  const std::vector<std::string> hashes = hashes_of(*data.eval, 0, 3);  // 2 images, 3 epochs
  EXPECT_EQ(std::set<std::string>(hashes.begin(), hashes.end()).size(), 2U);
}

TEST_F(ImageFolder, NamesABrokenFileAndGoesOnForTheOthers) {
  put_photos(4);
  put("train/cat/1.jpg", photo_.substr(0, photo_.size() / 2));
  put("train/cat/2.jpg", "no image");
  const OpenedData data = open_data(request());
  const SplitSurvey survey =
      survey_split(*data.train, "train", {.num_threads = 3, .on_broken = OnBroken::kList});
  ASSERT_EQ(survey.num_broken, 2);
  EXPECT_THAT(survey.broken[0].what, HasSubstr("train/cat/1.jpg"));
  EXPECT_THAT(survey.broken[1].what, HasSubstr("train/cat/2.jpg"));
  EXPECT_EQ(survey.targets.at(1), 2);
  EXPECT_THAT(thrown_message<DataError>([&] { hashes_of(*data.train, 2, 4); }),
              HasSubstr("train/cat/"));
}

TEST_F(ImageFolder, NamesAFileThatIsGone) {
  put_photos(1);
  const OpenedData data = open_data(request());
  remove_file(at("train/cat/0.jpg"));
  EXPECT_THAT(thrown_message<DataError>([&] { read_pixels(*data.train, 1); }),
              HasSubstr("train/cat/0.jpg"));
}

TEST_F(ImageFolder, PacksAsPixelsAndAsTheFilesThemselves) {
  put_photos(2);
  const OpenedData data = open_data(request());
  for (const bool is_original : {false, true}) {
    PackRequest packing;
    packing.output_dir = at(is_original ? "original" : "pixels");
    packing.is_original = is_original;
    pack_data(data, packing);
    DataRequest packed = request();
    packed.name = "packed";
    packed.directory = packing.output_dir;
    const OpenedData opened = open_data(packed);
    ASSERT_EQ(opened.train->size(), 4);
    EXPECT_EQ(read_pixels(*opened.train, 3), read_pixels(*data.train, 3));
    EXPECT_EQ(read_pixels(*opened.eval, 0), read_pixels(*data.eval, 0));
  }
}

TEST_F(ImageFolder, GivesTheSamePixelsAsTarShards) {
  put_photos(1);
  const OpenedData folder = open_data(request());
  write_bytes(at("x-train-0.tar"), tar_member("0.jpeg", photo_) + tar_member("0.cls", "0") +
                                       tar_member("1.jpg", photo_) + tar_member("1.cls", "1") +
                                       tar_end());
  DataRequest asked = request();
  asked.name = "tar_shards";
  asked.directory = at("x-train-0.tar");
  const OpenedData tar = open_data(asked);
  EXPECT_EQ(hashes_of(*tar.train, 2, 5), hashes_of(*folder.train, 0, 5));
}

}  // namespace
}  // namespace assay::data
