// What the decoders of single formats share. For image_file.cpp, jpeg_file.cpp and png_file.cpp.
#pragma once

#include <string>
#include <string_view>

#include "data/image_file.h"

namespace assay::data::image_formats {

// Throw DataError if this build has no such decoder.
std::unique_ptr<ImageFile> open_jpeg(std::string_view file, const std::string& origin,
                                     JpegScale scale);
std::unique_ptr<ImageFile> open_png(std::string_view file, const std::string& origin);

// Throws DataError: "<origin>: <what>. Fix: ...".
[[noreturn]] void refuse(const std::string& origin, std::string_view kind, std::string_view what);

// Throws DataError unless 1 .. kMostPixels.
void check_pixel_count(const ImageSize& size, const std::string& origin, std::string_view kind);

}  // namespace assay::data::image_formats
