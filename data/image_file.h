// JPEG and PNG files as upright RGB pixels, the same on every path:
//   gray, palette, 1, 2, 4 bit   red = green = blue, or the palette's colour
//   alpha                        dropped
//   16 bit                       the high byte; gray without alpha: values above 255 become 255,
//                                as Pillow's convert("RGB") does
//   CMYK, YCCK                   taken as inverted, as Adobe writes them and Pillow reads them
//   EXIF orientation (JPEG)      applied, as Pillow's ImageOps.exif_transpose does
//   colour profiles, gamma       ignored
// A file that is cut off or damaged is refused, never filled up with gray.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/dataset.h"
#include "data/pixels.h"

namespace assay::data {

// Whether this build has them; without, such a file is refused by name.
bool has_jpeg_decoder();
bool has_png_decoder();

// More pixels are refused before memory is taken: 400 MB of RGB.
constexpr int64_t kMostPixels = int64_t{1} << 27;

// The part of an image that was asked for, as far as whole pixels go, and where it lies in them.
struct DecodedRegion {
  RgbPixels pixels;
  RealBox box;  // in these pixels
};

// One image file. Thread-compatible; borrows the bytes.
class ImageFile {
 public:
  virtual ~ImageFile() = default;
  // Upright. Known from the file's head.
  virtual ImageSize size() const = 0;
  // `box` lies in size(). `wanted` is what it will be resized to: kAuto goes by it. Once only.
  // Throws DataError.
  virtual void decode(const PixelBox& box, const ImageSize& wanted, DecodedRegion& region) = 0;
};

// By the file's first bytes. Throws DataError naming `origin`: neither JPEG nor PNG, a damaged
// head, no or too many pixels, a kind that this build cannot decode.
std::unique_ptr<ImageFile> open_image_file(std::string_view file, const std::string& origin,
                                           JpegScale scale);

}  // namespace assay::data
