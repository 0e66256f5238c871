#include "data/image_samples.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace assay::data {
namespace {

class ImageSamples : public Dataset {
 public:
  ImageSamples(std::unique_ptr<EncodedImages> images, SampleSpec spec, DecodeImage decode,
               AugmentImage augment)
      : images_(std::move(images)),
        spec_(std::move(spec)),
        decode_(std::move(decode)),
        augment_(std::move(augment)) {}
  int64_t size() const override { return images_->size(); }
  const SampleSpec& spec() const override { return spec_; }
  void read(int64_t id, std::span<unsigned char> features,
            std::span<int64_t> targets) const override {
    check_read(*this, id, features, targets);
    thread_local std::string file;  // grows to the largest file, once a thread
    images_->read(id, file);
    decode_(file, images_->origin(id), id, features);
    targets[0] = images_->label(id);
  }
  void read_for_training(const ReadContext& context, int64_t id, std::span<unsigned char> features,
                         std::span<int64_t> targets) const override {
    if (!augment_) {
      read(id, features, targets);
      return;
    }
    check_read(*this, id, features, targets);
    thread_local std::string file;
    images_->read(id, file);
    augment_(file, images_->origin(id), {context, id}, features);
    targets[0] = images_->label(id);
  }
  const EncodedImages* images() const override { return images_.get(); }

 private:
  std::unique_ptr<EncodedImages> images_;
  SampleSpec spec_;
  DecodeImage decode_;
  AugmentImage augment_;
};

}  // namespace

std::unique_ptr<Dataset> make_image_samples(std::unique_ptr<EncodedImages> images, SampleSpec spec,
                                            DecodeImage decode, AugmentImage augment) {
  return std::make_unique<ImageSamples>(std::move(images), std::move(spec), std::move(decode),
                                        std::move(augment));
}

OpenedSource open_image_samples(ImageSplits splits, OpenedSource source, const DataRequest& request,
                                const MakeImageDecoding& make_decoding) {
  if (splits.train->size() == 0) {
    throw DataError(cat("data set ", request.name, ": ", quoted(request.directory),
                        " has no images to train on. Fix: check --data_dir"));
  }
  const int64_t num_classes = checked_num_classes(*splits.train, *splits.eval, request.class_limit);
  ImageDecoding decoding = make_decoding(request);
  decoding.spec.num_classes = num_classes;
  source.recipe += decoding.recipe;
  source.train = make_image_samples(std::move(splits.train), decoding.spec, decoding.plain,
                                    decoding.augmented);
  source.eval = make_image_samples(std::move(splits.eval), decoding.spec, decoding.plain);
  return source;
}

int64_t checked_num_classes(const EncodedImages& train, const EncodedImages& eval, int64_t limit) {
  int64_t num_classes = 0;
  for (const EncodedImages* images : {&train, &eval}) {
    for (int64_t id = 0; id < images->size(); ++id) {
      const int64_t label = images->label(id);
      num_classes = std::max(num_classes, label + 1);
      if (limit == 0 || label < limit) continue;
      throw DataError(cat(images->origin(id), ": label is ", label, ", must be in [0, ", limit - 1,
                          "]. Fix: the model that has so many classes, or correct the label"));
    }
  }
  return num_classes;
}

}  // namespace assay::data
