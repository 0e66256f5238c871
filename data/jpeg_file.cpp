// JPEG through libjpeg-turbo's API. Only the rows and columns that are wanted are computed.
#include "data/image_formats.h"

#ifdef ASSAY_HAS_JPEG

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jerror.h>
#include <jpeglib.h>

#include "base/text.h"
#include "data/orientation.h"

namespace assay::data::image_formats {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr int kMostScans = 500;  // of a progressive file; encoders write about ten
constexpr int64_t kMargin = 16;  // columns; smoothing of colour reaches 4 beyond a region
constexpr int64_t kChannels = RgbPixels::kChannels;
// A Huffman code has at least one bit for each block of 64 pixels of the finest component; a
// second bound of two covers components that are fine in one direction each.
constexpr int64_t kMostPixelsAByte = 8 * 64 * 2;

// libjpeg's way out of an error is a jump; the C++ side throws behind it.
struct ErrorManager : jpeg_error_mgr {
  jmp_buf place;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void on_error(j_common_ptr info) {
  auto* errors = static_cast<ErrorManager*>(info->err);
  errors->format_message(info, errors->message);
  std::longjmp(errors->place, 1);
}

// Warnings that leave every pixel as it was written. Behind all others (a stream that ends, a bad
// code, a scan out of order) libjpeg goes on with pixels it has made up.
bool is_harmless(int code) {
  return code == JWRN_ADOBE_XFORM || code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR;
}

void on_message(j_common_ptr info, int level) {
  if (level < 0 && !is_harmless(info->err->msg_code)) on_error(info);
}

void drop_output(j_common_ptr) {}

void check_scans(j_common_ptr info) {
  auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number <= kMostScans) return;
  auto* errors = static_cast<ErrorManager*>(info->err);
  std::snprintf(errors->message, sizeof(errors->message), "it has more than %d scans", kMostScans);
  std::longjmp(errors->place, 1);
}

// As Pillow does it: all four are stored inverted, and C, M, Y weigh by what K leaves.
void cmyk_to_rgb(const unsigned char* from, int64_t count, unsigned char* to) {
  for (int64_t i = 0; i < count; ++i, from += 4, to += kChannels) {
    const int light = from[3];
    for (int c = 0; c < kChannels; ++c) {
      const int product = (255 - from[c]) * light + 128;
      to[c] = static_cast<unsigned char>(std::max(0, light - (((product >> 8) + product) >> 8)));
    }
  }
}

class JpegFile : public ImageFile {
 public:
  JpegFile(std::string_view file, std::string origin, JpegScale scale)
      : file_(file), origin_(std::move(origin)), scale_(scale) {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = on_error;
    errors_.emit_message = on_message;
    errors_.output_message = drop_output;
    const bool is_head_good = attempt([this] {
      jpeg_create_decompress(&info_);
      jpeg_save_markers(&info_, kExifMarker, 0xFFFF);
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file_.data()),
                   static_cast<unsigned long>(file_.size()));
      jpeg_read_header(&info_, TRUE);
    });
    try {
      if (!is_head_good) refuse(origin_, "JPEG", errors_.message);
      check_head();
    } catch (...) {  // no destructor runs behind a constructor that throws
      jpeg_destroy_decompress(&info_);
      throw;
    }
  }
  ~JpegFile() override { jpeg_destroy_decompress(&info_); }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;

  ImageSize size() const override { return turned_size(stored_, orientation_); }

  void decode(const PixelBox& box, const ImageSize& wanted, DecodedRegion& region) override {
    const PixelBox stored = stored_box(box, stored_, orientation_);
    const int64_t reduction = reduction_for(stored, turned_size(wanted, orientation_));
    start(reduction);
    const auto factor = static_cast<double>(reduction);
    const RealBox real = {
        static_cast<double>(stored.left) / factor, static_cast<double>(stored.top) / factor,
        static_cast<double>(stored.width) / factor, static_cast<double>(stored.height) / factor};
    // The whole pixels that the box touches.
    const PixelBox touched = {
        stored.left / reduction, stored.top / reduction,
        (stored.left + stored.width + reduction - 1) / reduction - stored.left / reduction,
        (stored.top + stored.height + reduction - 1) / reduction - stored.top / reduction};
    RealBox within = real;
    within.left -= static_cast<double>(touched.left);
    within.top -= static_cast<double>(touched.top);
    if (orientation_ == Orientation::kUpright) {
      read_region(touched, region.pixels);
      region.box = within;
      return;
    }
    thread_local RgbPixels as_stored;
    read_region(touched, as_stored);
    make_upright(as_stored, orientation_, region.pixels);
    region.box = upright_box(within, as_stored.size(), orientation_);
  }

 private:
  // Runs calls of libjpeg; false if it gave up. Nothing with a destructor may live in `step`.
  template <class Step>
  [[gnu::noinline]] bool attempt(const Step& step) {
    if (setjmp(errors_.place) != 0) return false;
    step();
    return true;
  }

  void check_head() {
    stored_ = {static_cast<int64_t>(info_.image_width), static_cast<int64_t>(info_.image_height)};
    check_pixel_count(stored_, origin_, "JPEG");
    const auto bytes = static_cast<int64_t>(file_.size());
    if (info_.arith_code == FALSE && stored_.width * stored_.height / kMostPixelsAByte > bytes) {
      refuse(origin_, "JPEG",
             cat("it says to have ", stored_.width, " x ", stored_.height,
                 " pixels, more than its ", bytes, " bytes can hold"));
    }
    for (auto* marker = info_.marker_list; marker != nullptr; marker = marker->next) {
      if (marker->marker != kExifMarker) continue;
      orientation_ = orientation_of_exif(
          {reinterpret_cast<const char*>(marker->data), size_t{marker->data_length}});
      if (orientation_ != Orientation::kUpright) break;
    }
  }

  int64_t reduction_for(const PixelBox& box, const ImageSize& wanted) const {
    if (scale_ == JpegScale::kExact) return 1;
    for (const int64_t reduction : {8, 4, 2}) {
      if (box.width >= wanted.width * reduction && box.height >= wanted.height * reduction) {
        return reduction;
      }
    }
    return 1;
  }

  void start(int64_t reduction) {
    progress_.progress_monitor = check_scans;
    info_.progress = &progress_;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(reduction);
    const bool has_four = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = has_four ? JCS_CMYK : JCS_RGB;
    if (!attempt([this] { jpeg_start_decompress(&info_); })) fail();
  }

  [[noreturn]] void fail() { refuse(origin_, "JPEG", errors_.message); }

  // `region` counts in output pixels.
  void read_region(const PixelBox& region, RgbPixels& pixels) {
    const auto width = static_cast<int64_t>(info_.output_width);
    auto left = static_cast<JDIMENSION>(std::max<int64_t>(region.left - kMargin, 0));
    const int64_t right = std::min(region.left + region.width + kMargin, width);
    auto columns = static_cast<JDIMENSION>(right - left);
    const bool is_part = columns < info_.output_width;
    const auto above = static_cast<JDIMENSION>(region.top);
    if (!attempt([&] {
          if (is_part) jpeg_crop_scanline(&info_, &left, &columns);
          if (above > 0) jpeg_skip_scanlines(&info_, above);
        })) {
      fail();
    }
    pixels.reset({region.width, region.height});
    thread_local std::vector<unsigned char> line;
    line.resize(size_t{columns} * static_cast<size_t>(info_.output_components));
    const int64_t skipped = (region.left - left) * info_.output_components;
    for (int64_t y = 0; y < region.height; ++y) {
      unsigned char* row = line.data();
      if (!attempt([&] { jpeg_read_scanlines(&info_, &row, 1); })) fail();
      if (info_.output_components == 4) {
        cmyk_to_rgb(row + skipped, region.width, pixels.row(y));
      } else {
        std::memcpy(pixels.row(y), row + skipped, static_cast<size_t>(region.width * kChannels));
      }
    }
    check_end();
  }

  // Rows below the region are not decoded: whether they are there shows in the end marker, which
  // cannot occur within the coded pixels.
  void check_end() {
    if (info_.unread_marker == JPEG_EOI || jpeg_input_complete(&info_) != FALSE) return;
    const std::string_view rest(reinterpret_cast<const char*>(info_.src->next_input_byte),
                                info_.src->bytes_in_buffer);
    if (rest.find("\xff\xd9") != std::string_view::npos) return;
    refuse(origin_, "JPEG", cat("it is cut off: no end marker in its ", file_.size(), " bytes"));
  }

  std::string_view file_;
  std::string origin_;
  JpegScale scale_;
  ImageSize stored_;
  Orientation orientation_ = Orientation::kUpright;
  ErrorManager errors_ = {};
  jpeg_progress_mgr progress_ = {};
  jpeg_decompress_struct info_ = {};
};

}  // namespace

std::unique_ptr<ImageFile> open_jpeg(std::string_view file, const std::string& origin,
                                     JpegScale scale) {
  return std::make_unique<JpegFile>(file, origin, scale);
}

}  // namespace assay::data::image_formats

namespace assay::data {

bool has_jpeg_decoder() { return true; }

}  // namespace assay::data

#else

#include "base/error.h"
#include "base/text.h"

namespace assay::data::image_formats {

std::unique_ptr<ImageFile> open_jpeg(std::string_view, const std::string& origin, JpegScale) {
  throw DataError(cat(origin,
                      ": a JPEG image, and this build has no JPEG decoder. Fix: apt-get "
                      "install libjpeg-dev, then build again"));
}

}  // namespace assay::data::image_formats

namespace assay::data {

bool has_jpeg_decoder() { return false; }

}  // namespace assay::data

#endif
