#include "models/layers.h"

#include <cmath>
#include <memory>

#include <torch/nn/init.h>
#include <torch/nn/module.h>

#include "base/error.h"
#include "base/text.h"
#include "models/sizes.h"

namespace assay::models {
namespace {

constexpr double kBatchNormEpsilon = 1e-5;
constexpr double kBatchNormMomentum = 0.1;

void start_at_zero(const at::Tensor& bias) { torch::nn::init::zeros_(bias); }

torch::nn::Module& add_module(torch::nn::Module& parent, const std::string& name) {
  return *parent.register_module(name, std::make_shared<torch::nn::Module>());
}

// torch::nn::Module::to turns every tensor into the type asked for; a counter stays one, as in
// Python: float32 cannot count past 2^24.
class BatchNormImpl : public torch::nn::Module {
 public:
  void to(torch::Device device, torch::Dtype type, bool non_blocking) override {
    torch::nn::Module::to(device, type, non_blocking);
    keep_counter();
  }
  void to(torch::Dtype type, bool non_blocking) override {
    torch::nn::Module::to(type, non_blocking);
    keep_counter();
  }
  using torch::nn::Module::to;

  const std::shared_ptr<RankSums>& ranks() const { return ranks_; }

 private:
  void keep_counter() {
    at::Tensor& counter = named_buffers(/*recurse=*/false)["num_batches_tracked"];
    counter.set_data(counter.to(at::kLong));
  }

  std::shared_ptr<RankSums> ranks_ = std::make_shared<RankSums>();
};

}  // namespace

Start he_start() {
  return {.weight =
              [](const at::Tensor& weight) {
                torch::nn::init::kaiming_normal_(weight, 0.0, torch::kFanOut, torch::kReLU);
              },
          .bias = start_at_zero};
}

Start fan_in_start(int64_t fan_in) {
  return {.weight =
              [](const at::Tensor& weight) {
                torch::nn::init::kaiming_uniform_(weight, std::sqrt(5.0));
              },
          .bias =
              [fan_in](const at::Tensor& bias) {
                const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
                torch::nn::init::uniform_(bias, -bound, bound);
              }};
}

Start normal_start(double stddev) {
  return {.weight =
              [stddev](const at::Tensor& weight) { torch::nn::init::normal_(weight, 0.0, stddev); },
          .bias = start_at_zero};
}

at::Tensor Convolution::forward(const at::Tensor& x) const {
  return at::conv2d(x, weight, bias, shape.stride, shape.padding, /*dilation=*/1, shape.groups);
}

at::Tensor BatchNorm::forward(const at::Tensor& x, bool is_training) const {
  if (is_training) {
    if (x.numel() == x.size(1) && ranks->size == 1) {
      throw ConfigError(cat("batch norm in training got ", shape_text(x.sizes()),
                            ", one value a channel, and needs two or more. Fix: a larger "
                            "--batch_size or model.image_size, or --drop_last if the last step of "
                            "an epoch has a single sample"));
    }
    const at::NoGradGuard no_grad;
    num_batches_tracked.add_(1);
  }
  if (is_training && ranks->all_reduce != nullptr) {
    return sync_batch_norm(x, {weight, bias, running_mean, running_var},
                           {kBatchNormMomentum, kBatchNormEpsilon}, *ranks);
  }
  return at::batch_norm(x, weight, bias, running_mean, running_var, is_training, kBatchNormMomentum,
                        kBatchNormEpsilon, at::globalContext().userEnabledCuDNN());
}

at::Tensor Linear::forward(const at::Tensor& x) const { return at::linear(x, weight, bias); }

at::Tensor LayerNorm::forward(const at::Tensor& x) const {
  return at::layer_norm(x, weight.sizes(), weight, bias, epsilon);
}

Convolution add_convolution(torch::nn::Module& parent, const std::string& name,
                            const ConvolutionShape& shape, const Start& start, at::Device device) {
  torch::nn::Module& own = add_module(parent, name);
  Convolution layer{
      .weight = own.register_parameter(
          "weight",
          at::empty({shape.out, shape.in / shape.groups, shape.kernel, shape.kernel}, device)),
      .bias = {},
      .shape = shape};
  start.weight(layer.weight);
  if (!shape.has_bias) return layer;
  layer.bias = own.register_parameter("bias", at::empty({shape.out}, device));
  start.bias(layer.bias);
  return layer;
}

BatchNorm add_batch_norm(torch::nn::Module& parent, const std::string& name, int64_t channels,
                         at::Device device) {
  BatchNormImpl& own = *parent.register_module(name, std::make_shared<BatchNormImpl>());
  return {.weight = own.register_parameter("weight", at::ones({channels}, device)),
          .bias = own.register_parameter("bias", at::zeros({channels}, device)),
          .running_mean = own.register_buffer("running_mean", at::zeros({channels}, device)),
          .running_var = own.register_buffer("running_var", at::ones({channels}, device)),
          .num_batches_tracked = own.register_buffer(
              "num_batches_tracked", at::zeros({}, at::TensorOptions(device).dtype(at::kLong))),
          .ranks = own.ranks()};
}

int64_t share_batch_norms(torch::nn::Module& module, const RankSums& ranks) {
  int64_t count = 0;
  for (const auto& child : module.modules()) {
    const auto norm = std::dynamic_pointer_cast<BatchNormImpl>(child);
    if (!norm) continue;
    *norm->ranks() = ranks;
    ++count;
  }
  return count;
}

Linear add_linear(torch::nn::Module& parent, const std::string& name, at::IntArrayRef out_in,
                  const Start& start, at::Device device) {
  torch::nn::Module& own = add_module(parent, name);
  Linear layer{.weight = own.register_parameter("weight", at::empty(out_in, device)),
               .bias = own.register_parameter("bias", at::empty({out_in[0]}, device))};
  start.weight(layer.weight);
  start.bias(layer.bias);
  return layer;
}

LayerNorm add_layer_norm(torch::nn::Module& parent, const std::string& name, int64_t width,
                         double epsilon, at::Device device) {
  torch::nn::Module& own = add_module(parent, name);
  return {.weight = own.register_parameter("weight", at::ones({width}, device)),
          .bias = own.register_parameter("bias", at::zeros({width}, device)),
          .epsilon = epsilon};
}

torch::nn::Module& add_group(torch::nn::Module& parent, const std::string& name) {
  return add_module(parent, name);
}

}  // namespace assay::models
