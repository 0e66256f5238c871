// What a build says without one of the decoders of images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/image_file.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(std::string_view file) {
  return thrown_message<DataError>([&] { open_image_file(file, "a.x", JpegScale::kExact); });
}

TEST(ImageFormats, RefuseJpegByNameWithoutItsDecoder) {
  if (has_jpeg_decoder()) GTEST_SKIP() << "built with libjpeg-turbo";
  EXPECT_THAT(refusal("\xff\xd8\xff\xe0"), AllOf(HasSubstr("a.x"), HasSubstr("no JPEG decoder")));
}

TEST(ImageFormats, RefusePngByNameWithoutItsDecoder) {
  if (has_png_decoder()) GTEST_SKIP() << "built with libpng";
  EXPECT_THAT(refusal("\x89PNG\r\n\x1a\n"), AllOf(HasSubstr("a.x"), HasSubstr("no PNG decoder")));
}

TEST(ImageFormats, RefuseOtherFilesByTheirFirstBytes) {
  EXPECT_THAT(refusal("RIFF1234WEBP"), AllOf(HasSubstr("a.x"), HasSubstr("RIFF1234")));
}

}  // namespace
}  // namespace assay::data
