// What the families of image models are made of: layers as plain values over tensors that a module
// of the published name holds, and the distributions that weights start from. No model of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "models/sync_batch_norm.h"

namespace torch::nn {
class Module;
}

namespace assay::models {

// N images, C channels, H height, W width, S number of spatial places

// How a layer's weight and bias start. On the meta device nothing is drawn.
struct Start {
  std::function<void(const at::Tensor&)> weight;
  std::function<void(const at::Tensor&)> bias;
};

// N(0, 2 / fan_out), fan_out = out channels * kernel area; bias 0: He et al. 2015, eq. 14 and 15
// ("kaiming_normal_", mode "fan_out").
Start he_start();
// Uniform within 1 / sqrt(fan_in), as PyTorch's own layers start ("kaiming_uniform_" with
// a = sqrt(5)). fan_in: of the weight [out, in, ...], for the bias too.
Start fan_in_start(int64_t fan_in);
// N(0, stddev^2); bias 0.
Start normal_start(double stddev);

struct ConvolutionShape {
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 1;  // a square
  int64_t stride = 1;
  int64_t padding = 0;  // zeros on each side
  int64_t groups = 1;
  bool has_bias = false;
};

struct Convolution {
  at::Tensor weight;  // [out, in / groups, kernel, kernel]
  at::Tensor bias;    // [out]; undefined: none
  ConvolutionShape shape;
  at::Tensor forward(const at::Tensor& x) const;  // [N, in, H, W] -> [N, out, H', W']
};

// Ioffe & Szegedy 2015, alg. 1: (x - mean) / sqrt(variance + epsilon) * weight + bias a channel,
// mean and biased variance over the batch in training, the running ones in evaluation. A running
// value moves by momentum * (new - old), with the unbiased variance. Epsilon 1e-5, momentum 0.1.
// Shared between ranks (share_batch_norms), mean and variance in training are those of all ranks'
// images.
struct BatchNorm {
  at::Tensor weight;                      // [C]
  at::Tensor bias;                        // [C]
  at::Tensor running_mean;                // [C]
  at::Tensor running_var;                 // [C]
  at::Tensor num_batches_tracked;         // [] int64, whatever type the module is turned into
  std::shared_ptr<const RankSums> ranks;  // holds no function while each rank is on its own
  // [N, C, H, W] -> the same. Throws ConfigError in training if a channel has a single value.
  at::Tensor forward(const at::Tensor& x, bool is_training) const;
};
// From now on all batch norms of the module are shared. Returns how many there are.
int64_t share_batch_norms(torch::nn::Module& module, const RankSums& ranks);

struct Linear {
  at::Tensor weight;                              // [out, in]
  at::Tensor bias;                                // [out]
  at::Tensor forward(const at::Tensor& x) const;  // [.., in] -> [.., out]
};

// Ba et al. 2016, eq. 3 over the last dimension, with the biased variance.
struct LayerNorm {
  at::Tensor weight;  // [D]
  at::Tensor bias;    // [D]
  double epsilon = 1e-5;
  at::Tensor forward(const at::Tensor& x) const;  // [.., D] -> the same
};

// Each registers a module `name` with the layer's tensors under `parent`, so that they are called
// "<name>.weight" and so on there.
Convolution add_convolution(torch::nn::Module& parent, const std::string& name,
                            const ConvolutionShape& shape, const Start& start, at::Device device);
BatchNorm add_batch_norm(torch::nn::Module& parent, const std::string& name, int64_t channels,
                         at::Device device);
Linear add_linear(torch::nn::Module& parent, const std::string& name, at::IntArrayRef out_in,
                  const Start& start, at::Device device);
LayerNorm add_layer_norm(torch::nn::Module& parent, const std::string& name, int64_t width,
                         double epsilon, at::Device device);
// An empty module that only gives its children a prefix.
torch::nn::Module& add_group(torch::nn::Module& parent, const std::string& name);

}  // namespace assay::models
