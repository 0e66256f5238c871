// JPEG files: head, region, reduced size, orientation.
#include "base/error.h"
#include "data/image_file.h"
#include "tests/data/golden_images.h"
#include "tests/fuzz/fuzz_driver.h"

namespace assay::fuzz {
namespace {

void decode(const std::string& input, data::JpegScale scale, const data::PixelBox& within) {
  const auto image = data::open_image_file(input, "fuzz", scale);
  const data::ImageSize size = image->size();
  if (size.width * size.height > (int64_t{1} << 20)) return;  // slow, not wrong
  data::PixelBox box = {0, 0, size.width, size.height};
  if (within.width > 0) {
    box.left = within.left % size.width;
    box.top = within.top % size.height;
    box.width = 1 + within.width % (size.width - box.left);
    box.height = 1 + within.height % (size.height - box.top);
  }
  data::DecodedRegion region;
  image->decode(box, {16, 16}, region);
  const auto fits = [](double begin, double length, int64_t limit) {
    return begin >= 0 && length > 0 && begin + length <= static_cast<double>(limit) + 1e-9;
  };
  if (!fits(region.box.left, region.box.width, region.pixels.size().width) ||
      !fits(region.box.top, region.box.height, region.pixels.size().height)) {
    throw InternalError("the box lies beyond the pixels");
  }
}

void run(const std::string& input) {
  const auto number = static_cast<int64_t>(input.size());
  decode(input, data::JpegScale::kExact, {number * 7, number * 13, number * 3, number * 5});
  decode(input, data::JpegScale::kAuto, {});
}

}  // namespace
}  // namespace assay::fuzz

int main(int count, char** words) {
  assay::fuzz::Target target;
  target.run = assay::fuzz::run;
  for (const char* name : {"jpeg_420", "jpeg_422", "jpeg_progressive", "jpeg_restarts", "jpeg_gray",
                           "jpeg_cmyk", "jpeg_ycck", "jpeg_orientation_6"}) {
    target.seeds.push_back(assay::data::golden_image("small", name));
  }
  target.dictionary = {"\xff\xd8", "\xff\xd9", "\xff\xc0", "\xff\xc2", "\xff\xc4", "\xff\xda",
                       "\xff\xdb", "\xff\xdd", "\xff\xd0", "\xff\xe1", "\xff\xee", "Adobe"};
  return assay::fuzz::run_target(target, count, words);
}
