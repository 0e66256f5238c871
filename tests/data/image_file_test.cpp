#include "data/image_file.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/exif.h"
#include "tests/data/golden_images.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string bytes_of(const RgbPixels& pixels) {
  return {reinterpret_cast<const char*>(pixels.row(0)),
          static_cast<size_t>(pixels.size().width * pixels.size().height * RgbPixels::kChannels)};
}

// The pixels of a box at full size.
std::string region_of(std::string_view file, const PixelBox& box) {
  DecodedRegion region;
  const auto image = open_image_file(file, "x", JpegScale::kExact);
  image->decode(box, {box.width, box.height}, region);
  EXPECT_EQ(region.pixels.size(), (ImageSize{box.width, box.height}));
  return bytes_of(region.pixels);
}

PixelBox whole(const ImageSize& size) { return {0, 0, size.width, size.height}; }

std::string all_of(std::string_view file) {
  return region_of(file, whole(open_image_file(file, "x", JpegScale::kExact)->size()));
}

std::string refusal(std::string_view file) {
  return thrown_message<DataError>([&] { all_of(file); });
}

int largest_difference(const std::string& a, const std::string& b) {
  int largest = a.size() == b.size() ? 0 : 256;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(
        largest, std::abs(static_cast<unsigned char>(a[i]) - static_cast<unsigned char>(b[i])));
  }
  return largest;
}

TEST(ImageFile, GivesThePixelsOfPillowForEveryKind) {
  for (const nlohmann::json& record : golden_images("small")) {
    const std::string name = record["name"];
    const std::string file = from_hex(record["file"]);
    const ImageSize size = open_image_file(file, name, JpegScale::kExact)->size();
    EXPECT_EQ(size, (ImageSize{record["width"], record["height"]})) << name;
    // Both are the same arithmetic: slow integer DCT, triangle upsampling.
    EXPECT_EQ(largest_difference(all_of(file), from_hex(record["rgb"])), 0) << name;
  }
}

TEST(ImageFile, DecodesARegionToThePixelsOfTheWhole) {
  std::mt19937 random(20240917);  // NOLINT: the seed is the same on purpose
  for (const nlohmann::json& record : golden_images("large")) {
    const std::string file = from_hex(record["file"]);
    const std::string all = all_of(file);
    const int64_t width = record["width"];
    const int64_t height = record["height"];
    for (int i = 0; i < 150; ++i) {
      PixelBox box;
      box.width = 1 + static_cast<int64_t>(random()) % width;
      box.height = 1 + static_cast<int64_t>(random()) % height;
      box.left = static_cast<int64_t>(random()) % (width - box.width + 1);
      box.top = static_cast<int64_t>(random()) % (height - box.height + 1);
      std::string expected;
      for (int64_t y = 0; y < box.height; ++y) {
        expected += all.substr(static_cast<size_t>(((box.top + y) * width + box.left) * 3),
                               static_cast<size_t>(box.width * 3));
      }
      ASSERT_EQ(largest_difference(region_of(file, box), expected), 0)
          << record["name"] << " box " << i << ": " << box.left << " " << box.top << " "
          << box.width << " " << box.height;
    }
  }
}

TEST(ImageFile, DecodesFewerPixelsInTheScaledMode) {
  const std::string file = golden_image("large", "jpeg_420");
  const auto image = open_image_file(file, "x", JpegScale::kAuto);
  DecodedRegion region;
  image->decode({10, 20, 100, 90}, {32, 32}, region);  // 90 / 32 lies between 2 and 4
  EXPECT_EQ(region.pixels.size(), (ImageSize{50, 45}));
  EXPECT_EQ(region.box.left, 0);
  EXPECT_EQ(region.box.width, 50);
  DecodedRegion enlarged;
  open_image_file(file, "x", JpegScale::kAuto)->decode({10, 20, 30, 30}, {32, 32}, enlarged);
  EXPECT_EQ(enlarged.pixels.size(), (ImageSize{30, 30}));
}

TEST(ImageFile, PlacesTheBoxWithinScaledPixels) {
  const std::string file = golden_image("large", "jpeg_420_turned");
  DecodedRegion region;
  open_image_file(file, "x", JpegScale::kAuto)->decode({11, 21, 79, 99}, {32, 32}, region);
  // Stored x runs with upright y: stored columns 21 .. 120, halved 10.5 .. 60; upright x counts
  // stored rows from the end: rows 27 .. 106, halved 13.5 .. 53.
  EXPECT_EQ(region.pixels.size(), (ImageSize{40, 50}));
  EXPECT_DOUBLE_EQ(region.box.top, 0.5);
  EXPECT_DOUBLE_EQ(region.box.height, 49.5);
  EXPECT_DOUBLE_EQ(region.box.left, 0);
  EXPECT_DOUBLE_EQ(region.box.width, 39.5);
}

TEST(ImageFile, RefusesFilesThatAreCutOff) {
  for (const char* name : {"jpeg_420", "jpeg_progressive", "jpeg_restarts", "png_rgb",
                           "png_interlaced", "jpeg_cmyk"}) {
    const std::string file = golden_image("small", name);
    for (size_t tenth = 0; tenth < 10; ++tenth) {
      const std::string cut = file.substr(0, file.size() * tenth / 10);
      EXPECT_THAT(refusal(cut), AllOf(HasSubstr("x: "), HasSubstr("Fix:"))) << name << " " << tenth;
    }
    if (file.starts_with("\xff\xd8")) {  // all pixels are there, the end marker is not
      EXPECT_NE(refusal(file.substr(0, file.size() - 2)), "") << name;
    }
  }
}

TEST(ImageFile, RefusesACutBelowTheRegion) {
  const std::string file = golden_image("large", "jpeg_420");
  const std::string cut = file.substr(0, file.size() * 9 / 10);
  EXPECT_THAT(thrown_message<DataError>([&] {
                region_of(cut, {0, 0, 20, 10});
              }),
              AllOf(HasSubstr("cut off"), HasSubstr(cat(cut.size(), " bytes"))));
}

TEST(ImageFile, RefusesWhatIsNoImage) {
  EXPECT_THAT(refusal(""), AllOf(HasSubstr("neither"), HasSubstr("empty")));
  EXPECT_THAT(refusal("just a text\n"), AllOf(HasSubstr("neither"), HasSubstr("just a t")));
  EXPECT_THAT(refusal("\xff\xd8\xff"), HasSubstr("cannot be decoded"));
  EXPECT_THAT(refusal("\x89PNG\r\n\x1a\n"), HasSubstr("cannot be decoded"));
}

TEST(ImageFile, RefusesABadHuffmanTable) {
  std::string file = golden_image("small", "jpeg_420");
  const size_t table = file.find("\xff\xc4");
  ASSERT_NE(table, std::string::npos);
  file.replace(table + 5, 16, std::string(16, '\xff'));
  EXPECT_THAT(refusal(file), AllOf(HasSubstr("JPEG"), HasSubstr("cannot be decoded")));
}

TEST(ImageFile, RefusesSizesThatNoFileOfItsLengthHas) {
  std::string jpeg = golden_image("small", "jpeg_420");
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, std::string("\x27\x10\x27\x10", 4));
  EXPECT_THAT(refusal(jpeg), AllOf(HasSubstr("10000 x 10000"), HasSubstr("bytes can hold")));
  jpeg.replace(frame + 5, 4, std::string("\xff\xdc\xff\xdc", 4));
  EXPECT_THAT(refusal(jpeg), AllOf(HasSubstr("65500 x 65500"), HasSubstr(cat(kMostPixels))));
}

TEST(ImageFile, KeepsTheFormatOfTheBytesAndNotOfTheName) {
  const std::string png = golden_image("small", "png_rgb");
  EXPECT_EQ(open_image_file(png, "photo.jpg", JpegScale::kExact)->size(), (ImageSize{37, 29}));
}

TEST(Exif, WithoutAUsableOrientationIsUpright) {
  const std::string start("Exif\0\0", 6);
  const auto block = [&start](std::string_view rest) { return start + std::string(rest); };
  using std::string_view_literals::operator""sv;
  for (const std::string& bytes :
       {std::string(), start, block("XX"), block("II*\0\xff\xff\xff\xff"sv),
        block("II*\0\x8\0\0\0"sv), block("II*\0\x8\0\0\0\x1\0\x12\x1\x3\0\x1\0\0\0\x9\0\0\0"sv),
        block("II*\0\x8\0\0\0\xff\xff\0\0"sv)}) {
    EXPECT_EQ(orientation_of_exif(bytes), Orientation::kUpright) << quoted(bytes);
  }
  EXPECT_EQ(orientation_of_exif(block("II*\0\x8\0\0\0\x1\0\x12\x1\x3\0\x1\0\0\0\x6\0\0\0"sv)),
            Orientation::kTurnedLeft);
  EXPECT_EQ(orientation_of_exif(block("MM\0*\0\0\0\x8\0\x1\x1\x12\0\x3\0\0\0\x1\0\x8\0\0"sv)),
            Orientation::kTurnedRight);
}

}  // namespace
}  // namespace assay::data
