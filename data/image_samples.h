// Image files as samples: reads the file's bytes and hands them to the decoder, which writes the
// pixels into the batch slot. What tar shards and packed shards of image files have in common.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "data/dataset.h"
#include "data/encoded_images.h"
#include "data/sources.h"

namespace assay::data {

// Decodes one image file into the sample's pixels, the same whenever. `origin` names the file in
// messages. Called by several threads at once. Throws DataError.
using DecodeImage = std::function<void(std::string_view file, const std::string& origin, int64_t id,
                                       std::span<unsigned char> pixels)>;

// The same for training; chance depends on the draw alone.
struct SampleDraw {
  ReadContext context;
  int64_t id = 0;
};
using AugmentImage = std::function<void(std::string_view file, const std::string& origin,
                                        const SampleDraw& draw, std::span<unsigned char> pixels)>;

// One split. Labels must lie in [0, spec.num_classes). Without `augment` training reads what
// everybody reads.
std::unique_ptr<Dataset> make_image_samples(std::unique_ptr<EncodedImages> images, SampleSpec spec,
                                            DecodeImage decode, AugmentImage augment = {});

// How the images of a request become samples.
struct ImageDecoding {
  SampleSpec spec;         // num_classes is filled in by whoever knows the labels
  DecodeImage plain;       // evaluation, and whoever looks at the data
  AugmentImage augmented;  // training; may be empty
  std::string recipe;      // what is done to the pixels; part of the digest
};
using MakeImageDecoding = std::function<ImageDecoding(const DataRequest&)>;

struct ImageSplits {
  std::unique_ptr<EncodedImages> train;
  std::unique_ptr<EncodedImages> eval;
};
// Both splits as data sets; files and the recipe's start are those of `source`. Throws DataError if
// there is nothing to train on or a label is not below request.class_limit.
OpenedSource open_image_samples(ImageSplits splits, OpenedSource source, const DataRequest& request,
                                const MakeImageDecoding& make_decoding);

// The data sets of image files with a decoder of the caller's choice.
OpenedSource open_tar_files(const DataRequest& request, const MakeImageDecoding& make_decoding);
OpenedSource open_packed_files(const DataRequest& request, const MakeImageDecoding& make_decoding);

// 1 + the largest label of both; throws DataError naming image, label and range if it is not at
// most `limit` (0: no limit).
int64_t checked_num_classes(const EncodedImages& train, const EncodedImages& eval, int64_t limit);

}  // namespace assay::data
