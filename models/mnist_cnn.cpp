// The network of PyTorch's examples/mnist, after LeCun et al. 1998: two convolutions, two fully
// connected layers, 1,199,882 parameters. The example ends in log_softmax; here the logits leave
// the model, and the log-softmax is part of the loss.
#include "models/mnist_cnn.h"

#include <cmath>
#include <memory>

#include <torch/nn/init.h>
#include <torch/nn/module.h>

#include "models/sizes.h"

namespace assay::models {
namespace {

// B images, K classes
// (28 - 3 + 1) = 26, (26 - 3 + 1) = 24, 24 / 2 = 12; 64 channels of 12 x 12.
constexpr int64_t kFlattened = 64 * 12 * 12;

struct DropoutRates {
  double after_pool = 0.25;  // "dropout1" of the example
  double after_fc1 = 0.5;    // "dropout2"
};

// Weight and bias of a convolution [out, in, 3, 3] or a fully connected layer [out, in]. They
// start as PyTorch's own layers do: uniform within 1 / sqrt(fan_in), written as kaiming_uniform
// with a = sqrt(5) (He et al. 2015, eq. 14). On the meta device nothing is drawn.
class LayerImpl : public torch::nn::Module {
 public:
  LayerImpl(at::IntArrayRef weight_shape, at::Device device)
      : weight_(register_parameter("weight", at::empty(weight_shape, device))),
        bias_(register_parameter("bias", at::empty({weight_shape[0]}, device))) {
    const double fan_in = static_cast<double>(c10::multiply_integers(weight_shape.slice(1)));
    torch::nn::init::kaiming_uniform_(weight_, std::sqrt(5.0));
    torch::nn::init::uniform_(bias_, -1.0 / std::sqrt(fan_in), 1.0 / std::sqrt(fan_in));
  }

  const at::Tensor& weight() const { return weight_; }
  const at::Tensor& bias() const { return bias_; }

 private:
  at::Tensor weight_;
  at::Tensor bias_;  // [out]
};

class MnistCnnImpl : public torch::nn::Module {
 public:
  MnistCnnImpl(const DropoutRates& rates, int64_t num_classes, at::Device device) : rates_(rates) {
    conv1_ = add_layer("conv1", {32, 1, 3, 3}, device);
    conv2_ = add_layer("conv2", {64, 32, 3, 3}, device);
    fc1_ = add_layer("fc1", {128, kFlattened}, device);
    fc2_ = add_layer("fc2", {num_classes, 128}, device);
  }

  at::Tensor forward(const at::Tensor& images) {           // [B, 1, 28, 28]
    at::Tensor x = at::relu(convolve(images, *conv1_));    // [B, 32, 26, 26]
    x = at::relu(convolve(x, *conv2_));                    // [B, 64, 24, 24]
    x = at::max_pool2d(x, 2);                              // [B, 64, 12, 12]
    x = at::dropout(x, rates_.after_pool, is_training());  // [B, 64, 12, 12]
    x = at::relu(connect(at::flatten(x, 1), *fc1_));       // [B, 128]
    x = at::dropout(x, rates_.after_fc1, is_training());   // [B, 128]
    return connect(x, *fc2_);                              // [B, K]
  }

 private:
  std::shared_ptr<LayerImpl> add_layer(const char* name, at::IntArrayRef weight_shape,
                                       at::Device device) {
    return register_module(name, std::make_shared<LayerImpl>(weight_shape, device));
  }

  static at::Tensor convolve(const at::Tensor& x, const LayerImpl& layer) {
    return at::conv2d(x, layer.weight(), layer.bias());
  }

  static at::Tensor connect(const at::Tensor& x, const LayerImpl& layer) {
    return at::linear(x, layer.weight(), layer.bias());
  }

  DropoutRates rates_;
  std::shared_ptr<LayerImpl> conv1_;
  std::shared_ptr<LayerImpl> conv2_;
  std::shared_ptr<LayerImpl> fc1_;
  std::shared_ptr<LayerImpl> fc2_;
};

}  // namespace

Model make_mnist_cnn(const config::ModelConfig& config, Weights weights) {
  DropoutRates rates;
  if (config.dropout) rates = {.after_pool = *config.dropout, .after_fc1 = *config.dropout};
  const int64_t num_classes = checked_image_sizes(config).num_classes;
  return image_model(config,
                     std::make_shared<MnistCnnImpl>(rates, num_classes, device_of(weights)));
}

}  // namespace assay::models
