// Residual networks: He et al. 2016, "Deep residual learning for image recognition". resnet18, 34
// and 50: table 1, as torchvision has them. resnet20_cifar and resnet56_cifar: sec. 4.2, with the
// shortcuts without parameters of option A. Parameters: 11,689,512, 21,797,672, 25,557,032; 0.27 M
// and 0.85 M (table 6).
#include "models/resnet.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "base/error.h"
#include "base/text.h"
#include "models/layers.h"
#include "models/sizes.h"

namespace assay::models {
namespace {

// B images, S side of an image, s side of a stage's maps, C channels, w width of a stage, K classes

enum class BlockKind { kBasic, kBottleneck };
// Where a block changes the shape: 1 x 1 convolution (option B) or zeros for the new channels
// (option A); sec. 3.3, "Residual network".
enum class ShortcutKind { kProjection, kZeroPadding };

constexpr int64_t kBottleneckExpansion = 4;  // table 1: 64, 64, 256

int64_t out_channels(BlockKind kind, int64_t width) {
  return kind == BlockKind::kBasic ? width : kBottleneckExpansion * width;
}

struct BlockShape {
  int64_t in = 0;     // channels
  int64_t width = 0;  // channels of the 3 x 3 convolution
  int64_t stride = 1;
  BlockKind kind = BlockKind::kBasic;
  ShortcutKind shortcut = ShortcutKind::kProjection;
};

// y = ReLU(F(x) + shortcut(x)): sec. 3.2, eq. 1 and 2. Batch norm "right after each convolution and
// before activation" (sec. 3.4).
class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(const BlockShape& shape, at::Device device) : shape_(shape) {
    const int64_t width = shape.width;
    if (shape.kind == BlockKind::kBasic) {
      add(1, {.in = shape.in, .out = width, .kernel = 3, .stride = shape.stride, .padding = 1},
          device);
      add(2, {.in = width, .out = width, .kernel = 3, .padding = 1}, device);
    } else {
      // The stride is in the 3 x 3 convolution, as torchvision has it; the paper's is in the first.
      add(1, {.in = shape.in, .out = width, .kernel = 1}, device);
      add(2, {.in = width, .out = width, .kernel = 3, .stride = shape.stride, .padding = 1},
          device);
      add(3, {.in = width, .out = kBottleneckExpansion * width, .kernel = 1}, device);
    }
    if (keeps_shape() || shape.shortcut == ShortcutKind::kZeroPadding) return;
    torch::nn::Module& group = add_group(*this, "downsample");
    const int64_t out = out_channels(shape.kind, width);
    projection_ = {
        .convolution = add_convolution(
            group, "0", {.in = shape.in, .out = out, .kernel = 1, .stride = shape.stride},
            he_start(), device),
        .norm = add_batch_norm(group, "1", out, device)};
  }

  at::Tensor forward(const at::Tensor& x) {  // [B, C, s, s]
    at::Tensor y = x;
    for (size_t i = 0; i < units_.size(); ++i) {
      y = units_[i].forward(y, is_training());
      if (i + 1 < units_.size()) y = at::relu(y);
    }
    return at::relu(y + shortcut(x));  // [B, out, s / stride, s / stride]
  }

 private:
  struct Unit {
    Convolution convolution;
    BatchNorm norm;
    at::Tensor forward(const at::Tensor& x, bool is_training) const {
      return norm.forward(convolution.forward(x), is_training);
    }
  };

  void add(int64_t number, const ConvolutionShape& shape, at::Device device) {
    units_.push_back(
        {.convolution = add_convolution(*this, cat("conv", number), shape, he_start(), device),
         .norm = add_batch_norm(*this, cat("bn", number), shape.out, device)});
  }

  bool keeps_shape() const {
    return shape_.stride == 1 && shape_.in == out_channels(shape_.kind, shape_.width);
  }

  at::Tensor shortcut(const at::Tensor& x) const {
    if (keeps_shape()) return x;
    if (shape_.shortcut == ShortcutKind::kProjection) {
      return projection_->forward(x, is_training());
    }
    const int64_t new_channels = out_channels(shape_.kind, shape_.width) - shape_.in;
    const at::Tensor thinned =  // [B, C, s / stride, s / stride]
        x.slice(2, {}, {}, shape_.stride).slice(3, {}, {}, shape_.stride);
    return at::constant_pad_nd(thinned, {0, 0, 0, 0, 0, new_channels});
  }

  BlockShape shape_;
  std::vector<Unit> units_;
  std::optional<Unit> projection_;
};

// Table 1 of the paper, and sec. 4.2 for CIFAR-10.
struct Plan {
  ConvolutionShape stem;
  bool has_stem_pooling = false;  // 3 x 3 maximum, stride 2
  BlockKind kind = BlockKind::kBasic;
  ShortcutKind shortcut = ShortcutKind::kProjection;
  int64_t first_width = 0;      // doubled from stage to stage
  std::vector<int64_t> blocks;  // of each stage; the second and later ones halve the side
};

Plan imagenet_plan(BlockKind kind, std::vector<int64_t> blocks) {
  return {.stem = {.in = 3, .out = 64, .kernel = 7, .stride = 2, .padding = 3},
          .has_stem_pooling = true,
          .kind = kind,
          .shortcut = ShortcutKind::kProjection,
          .first_width = 64,
          .blocks = std::move(blocks)};
}

// 6 n + 2 layers: a 3 x 3 convolution, three stages of n blocks with 16, 32, 64 filters, and the
// fully connected one.
Plan cifar_plan(int64_t n) {
  return {.stem = {.in = 3, .out = 16, .kernel = 3, .padding = 1},
          .has_stem_pooling = false,
          .kind = BlockKind::kBasic,
          .shortcut = ShortcutKind::kZeroPadding,
          .first_width = 16,
          .blocks = {n, n, n}};
}

Plan plan_of(const std::string& name) {
  if (name == "resnet18") return imagenet_plan(BlockKind::kBasic, {2, 2, 2, 2});
  if (name == "resnet34") return imagenet_plan(BlockKind::kBasic, {3, 4, 6, 3});
  if (name == "resnet50") return imagenet_plan(BlockKind::kBottleneck, {3, 4, 6, 3});
  if (name == "resnet20_cifar") return cifar_plan(3);
  if (name == "resnet56_cifar") return cifar_plan(9);
  throw InternalError(cat("make_resnet was asked for ", quoted(name)));
}

class ResnetImpl : public torch::nn::Module {
 public:
  ResnetImpl(const Plan& plan, int64_t num_classes, at::Device device)
      : has_stem_pooling_(plan.has_stem_pooling) {
    conv1_ = add_convolution(*this, "conv1", plan.stem, he_start(), device);
    bn1_ = add_batch_norm(*this, "bn1", plan.stem.out, device);
    int64_t channels = plan.stem.out;
    int64_t width = plan.first_width;
    for (size_t stage = 0; stage < plan.blocks.size(); ++stage) {
      torch::nn::Module& layer = add_group(*this, cat("layer", stage + 1));
      for (int64_t block = 0; block < plan.blocks[stage]; ++block) {
        const BlockShape shape{.in = channels,
                               .width = width,
                               .stride = stage > 0 && block == 0 ? 2 : 1,
                               .kind = plan.kind,
                               .shortcut = plan.shortcut};
        blocks_.push_back(
            layer.register_module(cat(block), std::make_shared<BlockImpl>(shape, device)));
        channels = out_channels(plan.kind, width);
      }
      width *= 2;
    }
    fc_ = add_linear(*this, "fc", {num_classes, channels}, fan_in_start(channels), device);
  }

  at::Tensor forward(const at::Tensor& images) {                                   // [B, 3, S, S]
    at::Tensor x = at::relu(bn1_.forward(conv1_.forward(images), is_training()));  // [B, w, s, s]
    if (has_stem_pooling_) x = at::max_pool2d(x, 3, 2, 1);  // [B, w, S/4, S/4]
    for (const std::shared_ptr<BlockImpl>& block : blocks_) x = block->forward(x);  // [B, C, s, s]
    x = at::flatten(at::adaptive_avg_pool2d(x, {1, 1}), 1);                         // [B, C]
    return fc_.forward(x);                                                          // [B, K]
  }

 private:
  bool has_stem_pooling_;
  Convolution conv1_;
  BatchNorm bn1_;
  std::vector<std::shared_ptr<BlockImpl>> blocks_;
  Linear fc_;
};

}  // namespace

Model make_resnet(const config::ModelConfig& config, Weights weights) {
  return image_model(config, std::make_shared<ResnetImpl>(plan_of(config.name),
                                                          checked_image_sizes(config).num_classes,
                                                          device_of(weights)));
}

}  // namespace assay::models
