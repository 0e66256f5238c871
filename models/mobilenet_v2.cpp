// MobileNetV2: Sandler et al. 2018, "MobileNetV2: inverted residuals and linear bottlenecks", with
// width multiplier 1. Names, start and the dropout of 0.2 before the classifier are torchvision's;
// 3,504,872 parameters.
#include "models/mobilenet_v2.h"

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

// B images, S side of an image, s side of a stage's maps, C channels, t expansion factor, K classes

// Table 2: n blocks with c channels; the first has stride s.
struct Stage {
  int64_t expansion;  // t
  int64_t channels;   // c
  int64_t blocks;     // n
  int64_t stride;     // s
};
constexpr std::array<Stage, 7> kStages = {{{1, 16, 1, 1},
                                           {6, 24, 2, 2},
                                           {6, 32, 3, 2},
                                           {6, 64, 4, 2},
                                           {6, 96, 3, 1},
                                           {6, 160, 3, 2},
                                           {6, 320, 1, 1}}};
constexpr int64_t kFirstChannels = 32;
constexpr int64_t kLastChannels = 1280;

// Convolution and batch norm.
struct Unit {
  Convolution convolution;
  BatchNorm norm;
  at::Tensor forward(const at::Tensor& x, bool is_training) const {
    return norm.forward(convolution.forward(x), is_training);
  }
};

// "<name>.0" and "<name>.1" under `parent`; ReLU6 follows.
Unit add_unit(torch::nn::Module& parent, const std::string& name, const ConvolutionShape& shape,
              at::Device device) {
  torch::nn::Module& group = add_group(parent, name);
  return {.convolution = add_convolution(group, "0", shape, he_start(), device),
          .norm = add_batch_norm(group, "1", shape.out, device)};
}

struct BlockShape {
  int64_t in = 0;
  int64_t out = 0;
  int64_t expansion = 1;
  int64_t stride = 1;
};

// Table 1: expansion to t C channels, depthwise 3 x 3, linear projection; the input is added where
// stride and channels allow (sec. 3.3).
class InvertedResidualImpl : public torch::nn::Module {
 public:
  InvertedResidualImpl(const BlockShape& shape, at::Device device)
      : has_shortcut_(shape.stride == 1 && shape.in == shape.out) {
    torch::nn::Module& group = add_group(*this, "conv");
    const int64_t hidden = shape.expansion * shape.in;
    int64_t place = 0;
    if (shape.expansion != 1) {
      expansion_ = add_unit(group, cat(place++), {.in = shape.in, .out = hidden}, device);
    }
    depthwise_ = add_unit(group, cat(place++),
                          {.in = hidden,
                           .out = hidden,
                           .kernel = 3,
                           .stride = shape.stride,
                           .padding = 1,
                           .groups = hidden},
                          device);
    projection_.convolution =
        add_convolution(group, cat(place++), {.in = hidden, .out = shape.out}, he_start(), device);
    projection_.norm = add_batch_norm(group, cat(place++), shape.out, device);
  }

  at::Tensor forward(const at::Tensor& x) {  // [B, C, s, s]
    at::Tensor y = x;
    if (expansion_) y = at::relu6(expansion_->forward(y, is_training()));  // [B, t C, s, s]
    y = at::relu6(depthwise_.forward(y, is_training()));                   // [B, t C, s', s']
    y = projection_.forward(y, is_training());                             // [B, out, s', s']
    return has_shortcut_ ? x + y : y;                                      // [B, out, s', s']
  }

 private:
  bool has_shortcut_;
  std::optional<Unit> expansion_;
  Unit depthwise_;
  Unit projection_;
};

class MobilenetV2Impl : public torch::nn::Module {
 public:
  MobilenetV2Impl(const ImageSizes& sizes, at::Device device) : dropout_(sizes.dropout) {
    torch::nn::Module& features = add_group(*this, "features");
    int64_t place = 0;
    first_ =
        add_unit(features, cat(place++),
                 {.in = 3, .out = kFirstChannels, .kernel = 3, .stride = 2, .padding = 1}, device);
    int64_t channels = kFirstChannels;
    for (const Stage& stage : kStages) {
      for (int64_t block = 0; block < stage.blocks; ++block) {
        const BlockShape shape{.in = channels,
                               .out = stage.channels,
                               .expansion = stage.expansion,
                               .stride = block == 0 ? stage.stride : 1};
        blocks_.push_back(features.register_module(
            cat(place++), std::make_shared<InvertedResidualImpl>(shape, device)));
        channels = stage.channels;
      }
    }
    last_ = add_unit(features, cat(place), {.in = channels, .out = kLastChannels}, device);
    // Place 0 of the classifier is the dropout.
    classifier_ = add_linear(add_group(*this, "classifier"), "1",
                             {sizes.num_classes, kLastChannels}, normal_start(0.01), device);
  }

  at::Tensor forward(const at::Tensor& images) {                      // [B, 3, S, S]
    at::Tensor x = at::relu6(first_.forward(images, is_training()));  // [B, 32, S/2, S/2]
    for (const auto& block : blocks_) x = block->forward(x);          // [B, 320, S/32, S/32]
    x = at::relu6(last_.forward(x, is_training()));                   // [B, 1280, S/32, S/32]
    x = at::flatten(at::adaptive_avg_pool2d(x, {1, 1}), 1);           // [B, 1280]
    x = at::dropout(x, dropout_, is_training());                      // [B, 1280]
    return classifier_.forward(x);                                    // [B, K]
  }

 private:
  double dropout_;
  Unit first_;
  std::vector<std::shared_ptr<InvertedResidualImpl>> blocks_;
  Unit last_;
  Linear classifier_;
};

}  // namespace

Model make_mobilenet_v2(const config::ModelConfig& config, Weights weights) {
  return image_model(
      config, std::make_shared<MobilenetV2Impl>(checked_image_sizes(config), device_of(weights)));
}

}  // namespace assay::models
