// VGG-16: Simonyan & Zisserman 2015, "Very deep convolutional networks for large-scale image
// recognition", table 1, configuration D. vgg16_bn puts batch norm (Ioffe & Szegedy 2015) behind
// each convolution. Names, start and the pooling to 7 x 7, with which images of any size fit, are
// torchvision's; 138,357,544 parameters, 138,365,992 with batch norm.
#include "models/vgg.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "base/text.h"
#include "models/layers.h"
#include "models/sizes.h"

namespace assay::models {
namespace {

// B images, S side of an image, C channels of a stage, K classes

// Table 1, column D: convolutions of 3 x 3, each group followed by max pooling.
struct Stage {
  int64_t convolutions;
  int64_t channels;
};
constexpr std::array<Stage, 5> kStages = {{{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}};
constexpr int64_t kPooledSide = 7;  // S / 32 of the paper's 224 x 224
constexpr int64_t kHidden = 4096;

enum class Normalisation { kNone, kBatch };

class VggImpl : public torch::nn::Module {
 public:
  VggImpl(const ImageSizes& sizes, Normalisation normalisation, at::Device device)
      : dropout_(sizes.dropout) {
    add_features(normalisation, device);
    torch::nn::Module& classifier = add_group(*this, "classifier");
    const int64_t flattened = kStages.back().channels * kPooledSide * kPooledSide;
    // "sampled from a normal distribution with zero mean and 10^-2 variance" (sec. 3.1); the
    // deviation of 0.01 is torchvision's.
    const Start start = normal_start(0.01);
    fc6_ = add_linear(classifier, "0", {kHidden, flattened}, start, device);
    fc7_ = add_linear(classifier, "3", {kHidden, kHidden}, start, device);
    fc8_ = add_linear(classifier, "6", {sizes.num_classes, kHidden}, start, device);
  }

  at::Tensor forward(const at::Tensor& images) {  // [B, 3, S, S]
    at::Tensor x = images;
    size_t next = 0;
    for (const Stage& stage : kStages) {
      for (int64_t i = 0; i < stage.convolutions; ++i) x = features_[next++].forward(x, *this);
      x = at::max_pool2d(x, 2);  // [B, C, side / 2, side / 2]
    }
    x = at::flatten(at::adaptive_avg_pool2d(x, {kPooledSide, kPooledSide}), 1);  // [B, 25088]
    x = at::dropout(at::relu(fc6_.forward(x)), dropout_, is_training());         // [B, 4096]
    x = at::dropout(at::relu(fc7_.forward(x)), dropout_, is_training());         // [B, 4096]
    return fc8_.forward(x);                                                      // [B, K]
  }

 private:
  struct Feature {
    Convolution convolution;
    std::optional<BatchNorm> norm;
    at::Tensor forward(const at::Tensor& x, const torch::nn::Module& owner) const {
      const at::Tensor y = convolution.forward(x);  // [B, C, side, side]
      return at::relu(norm ? norm->forward(y, owner.is_training()) : y);
    }
  };

  // torchvision numbers convolution, batch norm, ReLU and pooling in one row.
  void add_features(Normalisation normalisation, at::Device device) {
    torch::nn::Module& group = add_group(*this, "features");
    int64_t place = 0;
    int64_t in = 3;
    for (const Stage& stage : kStages) {
      for (int64_t i = 0; i < stage.convolutions; ++i) {
        Feature feature;
        feature.convolution = add_convolution(
            group, cat(place++),
            {.in = in, .out = stage.channels, .kernel = 3, .padding = 1, .has_bias = true},
            he_start(), device);
        if (normalisation == Normalisation::kBatch) {
          feature.norm = add_batch_norm(group, cat(place++), stage.channels, device);
        }
        ++place;  // ReLU
        features_.push_back(feature);
        in = stage.channels;
      }
      ++place;  // max pooling
    }
  }

  double dropout_;
  std::vector<Feature> features_;
  Linear fc6_;  // the paper's FC-4096, FC-4096, FC-1000
  Linear fc7_;
  Linear fc8_;
};

}  // namespace

Model make_vgg(const config::ModelConfig& config, Weights weights) {
  const Normalisation normalisation =
      config.name.ends_with("_bn") ? Normalisation::kBatch : Normalisation::kNone;
  return image_model(config, std::make_shared<VggImpl>(checked_image_sizes(config), normalisation,
                                                       device_of(weights)));
}

}  // namespace assay::models
