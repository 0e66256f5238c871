// PNG through libpng.
#include "data/image_formats.h"

#ifdef ASSAY_HAS_PNG

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include <png.h>

#include "base/text.h"

namespace assay::data::image_formats {
namespace {

constexpr size_t kMostChunkBytes = size_t{16} << 20;  // of one ancillary chunk, unpacked
constexpr int64_t kChannels = RgbPixels::kChannels;

class PngFile : public ImageFile {
 public:
  PngFile(std::string_view file, std::string origin) : file_(file), origin_(std::move(origin)) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    try {
      if (info_ == nullptr) refuse(origin_, "PNG", "libpng has no memory or another version");
      if (!attempt([this] { read_head(); })) fail();
      size_ = {int64_t{png_get_image_width(png_, info_)},
               int64_t{png_get_image_height(png_, info_)}};
      check_pixel_count(size_, origin_, "PNG");
    } catch (...) {  // no destructor runs behind a constructor that throws
      png_destroy_read_struct(&png_, &info_, nullptr);
      throw;
    }
  }
  ~PngFile() override { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  ImageSize size() const override { return size_; }

  void decode(const PixelBox& box, const ImageSize&, DecodedRegion& region) override {
    is_gray16_ = png_get_color_type(png_, info_) == PNG_COLOR_TYPE_GRAY &&
                 png_get_bit_depth(png_, info_) == 16;
    int passes = 1;
    if (!attempt([&] { passes = set_transforms(); })) fail();
    region.pixels.reset({box.width, box.height});
    region.box = {0, 0, static_cast<double>(box.width), static_cast<double>(box.height)};
    if (passes > 1) {
      read_interlaced(passes, box, region.pixels);
    } else {
      std::vector<unsigned char> row(row_bytes());
      for (int64_t y = 0; y < size_.height; ++y) {
        if (!attempt([&] { png_read_row(png_, row.data(), nullptr); })) fail();
        take_row(row.data(), y, box, region.pixels);
      }
    }
    if (!attempt([this] { png_read_end(png_, nullptr); })) fail();
  }

 private:
  template <class Step>
  [[gnu::noinline]] bool attempt(const Step& step) {
    if (setjmp(place_) != 0) return false;
    step();
    return true;
  }

  static PngFile& self(png_structp png) { return *static_cast<PngFile*>(png_get_error_ptr(png)); }
  [[noreturn]] static void on_error(png_structp png, png_const_charp message) {
    std::snprintf(self(png).message_, sizeof(message_), "%s", message);
    std::longjmp(self(png).place_, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void give_bytes(png_structp png, png_bytep to, size_t count) {
    auto& file = *static_cast<PngFile*>(png_get_io_ptr(png));
    if (count > file.file_.size() - file.place_in_file_) png_error(png, "it is cut off");
    std::memcpy(to, file.file_.data() + file.place_in_file_, count);
    file.place_in_file_ += count;
  }

  void read_head() {
    png_set_read_fn(png_, this, give_bytes);
    png_set_chunk_malloc_max(png_, kMostChunkBytes);
    png_read_info(png_, info_);
  }

  // To 8-bit RGB, but for 16-bit gray. Returns the number of passes over the rows.
  int set_transforms() {
    png_set_expand(png_);
    if (!is_gray16_) {
      png_set_strip_16(png_);
      png_set_gray_to_rgb(png_);
    }
    png_set_strip_alpha(png_);
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return passes;
  }

  size_t row_bytes() const { return png_get_rowbytes(png_, info_); }

  void take_row(const unsigned char* row, int64_t y, const PixelBox& box, RgbPixels& pixels) const {
    if (y < box.top || y >= box.top + box.height) return;
    unsigned char* to = pixels.row(y - box.top);
    if (!is_gray16_) {
      std::memcpy(to, row + box.left * kChannels, static_cast<size_t>(box.width * kChannels));
      return;
    }
    for (int64_t x = 0; x < box.width; ++x) {  // big-endian; above 255 is 255
      const unsigned char* from = row + 2 * (box.left + x);
      const unsigned char value = from[0] != 0 ? 255 : from[1];
      std::fill_n(to + x * kChannels, kChannels, value);
    }
  }

  // Every pass needs what the earlier ones left.
  void read_interlaced(int passes, const PixelBox& box, RgbPixels& pixels) {
    const size_t bytes = row_bytes();
    std::vector<unsigned char> image(bytes * static_cast<size_t>(size_.height));
    if (!attempt([&] {
          for (int pass = 0; pass < passes; ++pass) {
            for (size_t y = 0; y < static_cast<size_t>(size_.height); ++y) {
              png_read_row(png_, image.data() + y * bytes, nullptr);
            }
          }
        })) {
      fail();
    }
    for (int64_t y = 0; y < size_.height; ++y) {
      take_row(image.data() + static_cast<size_t>(y) * bytes, y, box, pixels);
    }
  }

  [[noreturn]] void fail() { refuse(origin_, "PNG", message_); }

  std::string_view file_;
  std::string origin_;
  size_t place_in_file_ = 0;
  ImageSize size_;
  bool is_gray16_ = false;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  jmp_buf place_ = {};
  char message_[256] = {};
};

}  // namespace

std::unique_ptr<ImageFile> open_png(std::string_view file, const std::string& origin) {
  return std::make_unique<PngFile>(file, origin);
}

}  // namespace assay::data::image_formats

namespace assay::data {

bool has_png_decoder() { return true; }

}  // namespace assay::data

#else

#include "base/error.h"
#include "base/text.h"

namespace assay::data::image_formats {

std::unique_ptr<ImageFile> open_png(std::string_view, const std::string& origin) {
  throw DataError(cat(origin,
                      ": a PNG image, and this build has no PNG decoder. Fix: apt-get "
                      "install libpng-dev, then build again"));
}

}  // namespace assay::data::image_formats

namespace assay::data {

bool has_png_decoder() { return false; }

}  // namespace assay::data

#endif
