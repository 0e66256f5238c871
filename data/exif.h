// The one fact of an EXIF block that changes pixels: how the camera was held.
#pragma once

#include <string_view>

namespace assay::data {

// Which way up the stored pixels are; EXIF's own numbers (tag 0x0112). From 5 on, rows are columns.
enum class Orientation {
  kUpright = 1,
  kMirrored = 2,
  kUpsideDown = 3,
  kFlipped = 4,
  kTransposed = 5,
  kTurnedLeft = 6,  // a quarter to the right makes it upright
  kTransversed = 7,
  kTurnedRight = 8,
};

// `block` is a JPEG's APP1 segment. What is malformed or says nothing is upright, as readers of
// images have it.
Orientation orientation_of_exif(std::string_view block);

}  // namespace assay::data
