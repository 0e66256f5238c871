// Vision transformers: Dosovitskiy et al. 2021, "An image is worth 16x16 words: transformers for
// image recognition at scale". Names, start and epsilon are torchvision's; parameters of vit_b_16
// at 224 x 224: 86,567,656.
#include "models/vit.h"

#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include <torch/nn/init.h>
#include <torch/nn/module.h>

#include "base/error.h"
#include "base/text.h"
#include "models/layers.h"
#include "models/sizes.h"

namespace assay::models {
namespace {

// B images, S side of an image, P = 16 side of a patch, N = (S / P)^2 patches, D width, H heads,
// d = D / H width of a head, K classes

constexpr int64_t kPatchSide = 16;
constexpr double kLayerNormEpsilon = 1e-6;

struct VitSizes {
  int64_t layers = 12;
  int64_t heads = 0;
  int64_t width = 0;  // D
  int64_t hidden() const { return 4 * width; }
};

// B: Dosovitskiy et al. 2021, table 1. S and Ti: Touvron et al. 2021, table 1.
VitSizes vit_sizes(const std::string& name) {
  if (name == "vit_b_16") return {.heads = 12, .width = 768};
  if (name == "vit_s_16") return {.heads = 6, .width = 384};
  if (name == "vit_ti_16") return {.heads = 3, .width = 192};
  throw InternalError(cat("make_vit was asked for ", quoted(name)));
}

// N(0, stddev^2) cut to [-2, 2], by the inverse of its distribution function: a uniform number of
// its range, turned back ("trunc_normal_").
void truncated_normal(const at::Tensor& weight, double stddev) {
  const at::NoGradGuard no_grad;
  const double edge = std::erf(2.0 / (stddev * std::numbers::sqrt2));  // 2 Phi(2 / stddev) - 1
  at::Tensor values = weight;
  values.uniform_(-edge, edge).erfinv_().mul_(stddev * std::numbers::sqrt2).clamp_(-2.0, 2.0);
}

void start_at_zero(const at::Tensor& tensor) { torch::nn::init::zeros_(tensor); }

// Glorot & Bengio 2010, eq. 16.
void glorot_uniform(const at::Tensor& weight) { torch::nn::init::xavier_uniform_(weight); }

// softmax(q k^T / sqrt(d)) v a head, every token seeing all: appendix A, eq. 5 to 8.
class SelfAttentionImpl : public torch::nn::Module {
 public:
  SelfAttentionImpl(const VitSizes& sizes, at::Device device) : heads_(sizes.heads) {
    const int64_t width = sizes.width;
    in_proj_weight_ = register_parameter("in_proj_weight", at::empty({3 * width, width}, device));
    in_proj_bias_ = register_parameter("in_proj_bias", at::empty({3 * width}, device));
    glorot_uniform(in_proj_weight_);
    start_at_zero(in_proj_bias_);
    const Start start{.weight = fan_in_start(width).weight, .bias = start_at_zero};
    out_proj_ = add_linear(*this, "out_proj", {width, width}, start, device);
  }

  at::Tensor forward(const at::Tensor& x) {                                // [B, N + 1, D]
    const at::Tensor qkv = at::linear(x, in_proj_weight_, in_proj_bias_);  // [B, N + 1, 3 D]
    const std::vector<at::Tensor> parts = qkv.chunk(3, -1);                // 3 of [B, N + 1, D]
    at::Tensor y = at::scaled_dot_product_attention(                       // [B, H, N + 1, d]
        split_heads(parts[0]), split_heads(parts[1]), split_heads(parts[2]));
    y = y.transpose(1, 2).reshape(x.sizes());  // [B, N + 1, D]
    return out_proj_.forward(y);               // [B, N + 1, D]
  }

 private:
  at::Tensor split_heads(const at::Tensor& x) const {  // [B, N + 1, D]
    return x
        .view({x.size(0), x.size(1), heads_, x.size(2) / heads_})  // [B, N + 1, H, d]
        .transpose(1, 2);                                          // [B, H, N + 1, d]
  }

  int64_t heads_;
  at::Tensor in_proj_weight_;  // [3 D, D]: query, key, value
  at::Tensor in_proj_bias_;    // [3 D]
  Linear out_proj_;
};

// Eq. 2 and 3: layer norm before attention and feed-forward network, the input added behind each.
class EncoderBlockImpl : public torch::nn::Module {
 public:
  EncoderBlockImpl(const VitSizes& sizes, double dropout, at::Device device) : dropout_(dropout) {
    ln_1_ = add_layer_norm(*this, "ln_1", sizes.width, kLayerNormEpsilon, device);
    self_attention_ =
        register_module("self_attention", std::make_shared<SelfAttentionImpl>(sizes, device));
    ln_2_ = add_layer_norm(*this, "ln_2", sizes.width, kLayerNormEpsilon, device);
    // torchvision numbers linear, GELU, dropout, linear, dropout in one row.
    torch::nn::Module& mlp = add_group(*this, "mlp");
    const Start start{.weight = glorot_uniform, .bias = [](const at::Tensor& bias) {
                        torch::nn::init::normal_(bias, 0.0, 1e-6);
                      }};
    fc_1_ = add_linear(mlp, "0", {sizes.hidden(), sizes.width}, start, device);
    fc_2_ = add_linear(mlp, "3", {sizes.width, sizes.hidden()}, start, device);
  }

  at::Tensor forward(const at::Tensor& x) {                                     // [B, N + 1, D]
    const at::Tensor y = x + drop(self_attention_->forward(ln_1_.forward(x)));  // [B, N + 1, D]
    // h Phi(h), Phi the normal distribution function: Hendrycks & Gimpel 2016, sec. 2
    const at::Tensor h = drop(at::gelu(fc_1_.forward(ln_2_.forward(y))));  // [B, N + 1, 4 D]
    return y + drop(fc_2_.forward(h));                                     // [B, N + 1, D]
  }

 private:
  at::Tensor drop(const at::Tensor& x) const { return at::dropout(x, dropout_, is_training()); }

  double dropout_;
  LayerNorm ln_1_;
  std::shared_ptr<SelfAttentionImpl> self_attention_;
  LayerNorm ln_2_;
  Linear fc_1_;
  Linear fc_2_;
};

class EncoderImpl : public torch::nn::Module {
 public:
  EncoderImpl(const VitSizes& sizes, int64_t tokens, double dropout, at::Device device)
      : dropout_(dropout) {
    pos_embedding_ =
        register_parameter("pos_embedding", at::empty({1, tokens, sizes.width}, device));
    torch::nn::init::normal_(pos_embedding_, 0.0, 0.02);
    torch::nn::Module& layers = add_group(*this, "layers");
    for (int64_t layer = 0; layer < sizes.layers; ++layer) {
      blocks_.push_back(
          layers.register_module(cat("encoder_layer_", layer),
                                 std::make_shared<EncoderBlockImpl>(sizes, dropout, device)));
    }
    ln_ = add_layer_norm(*this, "ln", sizes.width, kLayerNormEpsilon, device);
  }

  at::Tensor forward(const at::Tensor& tokens) {                                   // [B, N + 1, D]
    at::Tensor x = at::dropout(tokens + pos_embedding_, dropout_, is_training());  // [B, N + 1, D]
    for (const auto& block : blocks_) x = block->forward(x);                       // [B, N + 1, D]
    return ln_.forward(x);                                                         // [B, N + 1, D]
  }

 private:
  double dropout_;  // "after every dense layer except for the qkv-projections and directly after
                    // adding positional- to patch embeddings" (appendix B.1)
  at::Tensor pos_embedding_;  // [1, N + 1, D]
  std::vector<std::shared_ptr<EncoderBlockImpl>> blocks_;
  LayerNorm ln_;
};

class VitImpl : public torch::nn::Module {
 public:
  VitImpl(const VitSizes& sizes, const ImageSizes& images, at::Device device) {
    const int64_t width = sizes.width;
    const int64_t side = images.image_size / kPatchSide;
    class_token_ = register_parameter("class_token", at::zeros({1, 1, width}, device));
    const double fan_in = static_cast<double>(3 * kPatchSide * kPatchSide);
    const Start patch_start{
        .weight = [fan_in](const at::Tensor& w) { truncated_normal(w, std::sqrt(1.0 / fan_in)); },
        .bias = start_at_zero};
    conv_proj_ = add_convolution(
        *this, "conv_proj",
        {.in = 3, .out = width, .kernel = kPatchSide, .stride = kPatchSide, .has_bias = true},
        patch_start, device);
    encoder_ = register_module(
        "encoder", std::make_shared<EncoderImpl>(sizes, side * side + 1, images.dropout, device));
    head_ = add_linear(add_group(*this, "heads"), "head", {images.num_classes, width},
                       {.weight = start_at_zero, .bias = start_at_zero}, device);
  }

  at::Tensor forward(const at::Tensor& images) {  // [B, 3, S, S]
    // Eq. 1: a linear map of each patch, the class token before them.
    const at::Tensor maps = conv_proj_.forward(images);                      // [B, D, S / P, S / P]
    const at::Tensor patches = at::flatten(maps, 2).transpose(1, 2);         // [B, N, D]
    const at::Tensor first = class_token_.expand({images.size(0), -1, -1});  // [B, 1, D]
    const at::Tensor x = encoder_->forward(at::cat({first, patches}, 1));    // [B, N + 1, D]
    return head_.forward(x.select(1, 0));                                    // [B, K]  eq. 4
  }

 private:
  at::Tensor class_token_;  // [1, 1, D]
  Convolution conv_proj_;
  std::shared_ptr<EncoderImpl> encoder_;
  Linear head_;
};

}  // namespace

Model make_vit(const config::ModelConfig& config, Weights weights) {
  return image_model(config,
                     std::make_shared<VitImpl>(vit_sizes(config.name), checked_image_sizes(config),
                                               device_of(weights)));
}

}  // namespace assay::models
