// Turns boxes and pixels between an image as stored and upright.
#pragma once

#include "data/exif.h"
#include "data/pixels.h"

namespace assay::data {

// Of the upright image; and the stored size from the upright one: it is its own inverse.
ImageSize turned_size(const ImageSize& size, Orientation orientation);

// The stored box of an upright one.
PixelBox stored_box(const PixelBox& upright, const ImageSize& stored, Orientation orientation);

// The upright box of a stored one, within a stored image of that size.
RealBox upright_box(const RealBox& box, const ImageSize& stored, Orientation orientation);

// `upright` gets the pixels of `stored`, which must be another object.
void make_upright(const RgbPixels& stored, Orientation orientation, RgbPixels& upright);

}  // namespace assay::data
