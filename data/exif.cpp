#include "data/exif.h"

#include <cstdint>

namespace assay::data {
namespace {

constexpr std::string_view kExifStart("Exif\0\0", 6);
constexpr uint16_t kOrientationTag = 0x0112;
constexpr uint16_t kShortType = 3;
constexpr size_t kEntryBytes = 12;

// A TIFF structure; numbers beyond its end are 0.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes), is_big_(bytes.starts_with("MM")) {}
  uint16_t number16(size_t place) const {
    return is_big_ ? static_cast<uint16_t>(byte(place) << 8 | byte(place + 1))
                   : static_cast<uint16_t>(byte(place + 1) << 8 | byte(place));
  }
  uint32_t number32(size_t place) const {
    const uint32_t first = number16(place);
    const uint32_t second = number16(place + 2);
    return is_big_ ? first << 16 | second : second << 16 | first;
  }

 private:
  uint32_t byte(size_t place) const {
    return place < bytes_.size() ? static_cast<unsigned char>(bytes_[place]) : 0;
  }

  std::string_view bytes_;
  bool is_big_;
};

}  // namespace

Orientation orientation_of_exif(std::string_view block) {
  if (!block.starts_with(kExifStart)) return Orientation::kUpright;
  const std::string_view body = block.substr(kExifStart.size());
  if (!body.starts_with("II") && !body.starts_with("MM")) return Orientation::kUpright;
  const Tiff tiff(body);
  const size_t directory = tiff.number32(4);
  if (tiff.number16(2) != 42) return Orientation::kUpright;
  const size_t count = tiff.number16(directory);
  for (size_t i = 0; i < count; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry >= body.size()) break;
    if (tiff.number16(entry) != kOrientationTag || tiff.number16(entry + 2) != kShortType) continue;
    const uint16_t value = tiff.number16(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<Orientation>(value) : Orientation::kUpright;
  }
  return Orientation::kUpright;
}

}  // namespace assay::data
