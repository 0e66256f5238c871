// Which part of an image training sees, and how evaluation frames one: torchvision's rules as
// functions of chance. No pixels here.
#pragma once

#include "data/pixels.h"
#include "data/sample_random.h"

namespace assay::data {

// torchvision.transforms.RandomResizedCrop with its defaults: 0.08 to 1 of the area, width to
// height from 3:4 to 4:3, after ten misses the largest box in the middle that has such a shape.
PixelBox random_resized_crop(const ImageSize& image, SampleRandom& random);

// RandomHorizontalFlip: true half of the time.
bool random_flip(SampleRandom& random);

// Resize(shorter) and then CenterCrop(size): what the whole image is resized to, and which part of
// that is kept.
struct EvalFrame {
  ImageSize resized;
  PixelBox crop;
};
EvalFrame eval_frame(const ImageSize& image, const ImageSize& size);

// The shorter side before the centre crop: 256 for 224, and in this proportion, rounded up, for
// others.
int64_t eval_resize_of(int64_t size);

}  // namespace assay::data
