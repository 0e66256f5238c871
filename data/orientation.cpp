#include "data/orientation.h"

#include <algorithm>

namespace assay::data {
namespace {

// Upright pixel (x, y) is the stored pixel that comes of first swapping x and y, then counting x
// or y from the other end.
struct Turn {
  bool is_swapped = false;
  bool is_x_reversed = false;  // of stored x
  bool is_y_reversed = false;
};

Turn turn_of(Orientation orientation) {
  switch (orientation) {
    case Orientation::kMirrored:
      return {.is_x_reversed = true};
    case Orientation::kUpsideDown:
      return {.is_x_reversed = true, .is_y_reversed = true};
    case Orientation::kFlipped:
      return {.is_y_reversed = true};
    case Orientation::kTransposed:
      return {.is_swapped = true};
    case Orientation::kTurnedLeft:
      return {.is_swapped = true, .is_y_reversed = true};
    case Orientation::kTransversed:
      return {.is_swapped = true, .is_x_reversed = true, .is_y_reversed = true};
    case Orientation::kTurnedRight:
      return {.is_swapped = true, .is_x_reversed = true};
    case Orientation::kUpright:
      break;
  }
  return {};
}

}  // namespace

ImageSize turned_size(const ImageSize& size, Orientation orientation) {
  return turn_of(orientation).is_swapped ? ImageSize{size.height, size.width} : size;
}

PixelBox stored_box(const PixelBox& upright, const ImageSize& stored, Orientation orientation) {
  const Turn turn = turn_of(orientation);
  PixelBox box = upright;
  if (turn.is_swapped) {
    std::swap(box.left, box.top);
    std::swap(box.width, box.height);
  }
  if (turn.is_x_reversed) box.left = stored.width - box.left - box.width;
  if (turn.is_y_reversed) box.top = stored.height - box.top - box.height;
  return box;
}

RealBox upright_box(const RealBox& box, const ImageSize& stored, Orientation orientation) {
  const Turn turn = turn_of(orientation);
  RealBox upright = box;
  if (turn.is_x_reversed) upright.left = static_cast<double>(stored.width) - box.left - box.width;
  if (turn.is_y_reversed) upright.top = static_cast<double>(stored.height) - box.top - box.height;
  if (turn.is_swapped) {
    std::swap(upright.left, upright.top);
    std::swap(upright.width, upright.height);
  }
  return upright;
}

void make_upright(const RgbPixels& stored, Orientation orientation, RgbPixels& upright) {
  constexpr int64_t kChannels = RgbPixels::kChannels;
  const Turn turn = turn_of(orientation);
  const ImageSize size = turned_size(stored.size(), orientation);
  upright.reset(size);
  for (int64_t y = 0; y < size.height; ++y) {
    unsigned char* to = upright.row(y);
    for (int64_t x = 0; x < size.width; ++x, to += kChannels) {
      int64_t from_x = turn.is_swapped ? y : x;
      int64_t from_y = turn.is_swapped ? x : y;
      if (turn.is_x_reversed) from_x = stored.size().width - 1 - from_x;
      if (turn.is_y_reversed) from_y = stored.size().height - 1 - from_y;
      std::copy_n(stored.row(from_y) + from_x * kChannels, kChannels, to);
    }
  }
}

}  // namespace assay::data
