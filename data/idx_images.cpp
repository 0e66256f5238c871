#include "data/idx_images.h"

#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "data/sources.h"

namespace assay::data {
namespace {

class IdxImages : public Dataset {
 public:
  IdxImages(IdxArray images, IdxArray labels, const PixelStatistics& statistics)
      : images_(std::move(images)), labels_(std::move(labels)) {
    spec_.feature_type = FeatureType::kUint8;
    spec_.feature_shape = {1, images_.shape[1], images_.shape[2]};
    spec_.targets_per_sample = 1;
    spec_.num_classes = kTenClasses;
    spec_.mean = {statistics.mean};
    spec_.stddev = {statistics.stddev};
  }
  int64_t size() const override { return images_.shape[0]; }
  const SampleSpec& spec() const override { return spec_; }
  void read(int64_t id, std::span<unsigned char> features,
            std::span<int64_t> targets) const override {
    check_read(*this, id, features, targets);
    const auto index = static_cast<size_t>(id);
    std::memcpy(features.data(), images_.values().data() + index * features.size(),
                features.size());
    targets[0] = labels_.values()[index];
  }

 private:
  IdxArray images_;
  IdxArray labels_;
  SampleSpec spec_;
};

}  // namespace

void check_labels(const IdxArray& images, const IdxArray& labels) {
  if (images.shape[0] != labels.shape[0]) {
    throw DataError(cat(images.source.path, " has ", images.shape[0], " images, ",
                        labels.source.path, " has ", labels.shape[0],
                        " labels; there must be as many. Fix: use the two files of one set"));
  }
  const std::span<const unsigned char> values = labels.values();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < kTenClasses) continue;
    throw DataError(cat(labels.source.path, ": label ", i, " is ", int{values[i]},
                        ", must be in [0, ", kTenClasses - 1,
                        "]. Fix: correct the file, or fetch it again"));
  }
}

std::unique_ptr<Dataset> make_idx_images(IdxArray images, IdxArray labels,
                                         const PixelStatistics& statistics) {
  check_labels(images, labels);
  return std::make_unique<IdxImages>(std::move(images), std::move(labels), statistics);
}

}  // namespace assay::data
