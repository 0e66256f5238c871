#include "data/image_file.h"

#include "base/error.h"
#include "base/text.h"
#include "data/image_formats.h"

namespace assay::data {
namespace image_formats {

void refuse(const std::string& origin, std::string_view kind, std::string_view what) {
  throw DataError(
      cat(origin, ": this ", kind, " image cannot be decoded: ", what,
          ". Fix: replace or remove the file (assay data verify lists all such files)"));
}

void check_pixel_count(const ImageSize& size, const std::string& origin, std::string_view kind) {
  if (size.width < 1 || size.height < 1) {
    refuse(origin, kind, cat("it says to have ", size.width, " x ", size.height, " pixels"));
  }
  if (size.width <= kMostPixels / size.height) return;
  refuse(origin, kind,
         cat("it says to have ", size.width, " x ", size.height, " pixels, must be at most ",
             kMostPixels, " in all"));
}

}  // namespace image_formats

namespace {

constexpr std::string_view kJpegStart = "\xff\xd8\xff";
constexpr std::string_view kPngStart = "\x89PNG\r\n\x1a\n";

std::string first_bytes(std::string_view file) {
  if (file.empty()) return "nothing: it is empty";
  return quoted(file.substr(0, 8));
}

}  // namespace

std::unique_ptr<ImageFile> open_image_file(std::string_view file, const std::string& origin,
                                           JpegScale scale) {
  if (file.starts_with(kJpegStart)) return image_formats::open_jpeg(file, origin, scale);
  if (file.starts_with(kPngStart)) return image_formats::open_png(file, origin);
  throw DataError(cat(origin, ": neither a JPEG nor a PNG image: ", file.size(),
                      " bytes that start with ", first_bytes(file),
                      ". Fix: convert the file, or remove it"));
}

}  // namespace assay::data
