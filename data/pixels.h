// Pixels in memory: three bytes each, red, green and blue, row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace assay::data {

struct ImageSize {
  int64_t width = 0;
  int64_t height = 0;
  bool operator==(const ImageSize&) const = default;
};

// Whole pixels of an image.
struct PixelBox {
  int64_t left = 0;
  int64_t top = 0;
  int64_t width = 0;
  int64_t height = 0;
  bool operator==(const PixelBox&) const = default;
};

// A box whose edges may lie within pixels.
struct RealBox {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

// Thread-compatible. Meant to be used again and again: memory is kept as long as it is about as
// large as what is needed, and is not touched before it is written.
class RgbPixels {
 public:
  static constexpr int64_t kChannels = 3;

  // Bytes behind the last pixel that may be read and written, so that vectors need no tails.
  static constexpr size_t kSpareBytes = 16;

  // What was held is gone.
  void reset(const ImageSize& size) {
    const auto bytes = static_cast<size_t>(size.width * size.height * kChannels) + kSpareBytes;
    if (bytes > capacity_ || capacity_ > 4 * bytes + kKeptBytes) {
      bytes_ = std::make_unique_for_overwrite<unsigned char[]>(bytes);
      capacity_ = bytes;
    }
    size_ = size;
  }
  const ImageSize& size() const { return size_; }
  unsigned char* row(int64_t y) { return bytes_.get() + y * size_.width * kChannels; }
  const unsigned char* row(int64_t y) const { return bytes_.get() + y * size_.width * kChannels; }

 private:
  static constexpr size_t kKeptBytes = size_t{16} << 20;  // one large image must not stay for ever

  ImageSize size_;
  size_t capacity_ = 0;
  std::unique_ptr<unsigned char[]> bytes_;
};

}  // namespace assay::data
