// Image files to pixels in the batch slot: decode, crop or resize, flip, planes of colour.
#pragma once

#include "data/image_samples.h"

namespace assay::data {

// For images of request.image_shape (empty: 3 x 224 x 224). Training: RandomResizedCrop and
// RandomHorizontalFlip if request.augment; everything else: Resize and CenterCrop. Scaling by
// ImageNet's mean and standard deviation. Throws ConfigError unless the shape has 3 channels.
ImageDecoding make_image_decoding(const DataRequest& request);

}  // namespace assay::data
