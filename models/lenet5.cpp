// LeNet-5: LeCun et al. 1998, "Gradient-based learning applied to document recognition", sec. II.B
// and fig. 2, with the paper's layer names; 61,706 parameters. As usual today, and unlike the
// paper: C3 sees all of S2's maps instead of those in table I, averages have no coefficient and
// bias of their own, tanh is unscaled, and the output layer gives logits instead of distances to
// bitmaps.
#include "models/lenet5.h"

#include <memory>

#include <torch/nn/module.h>

#include "models/layers.h"
#include "models/sizes.h"

namespace assay::models {
namespace {

// B images, K classes

class Lenet5Impl : public torch::nn::Module {
 public:
  Lenet5Impl(int64_t num_classes, at::Device device) {
    const auto convolution = [&](const char* name, const ConvolutionShape& shape) {
      const Start start = fan_in_start(shape.in * shape.kernel * shape.kernel);
      return add_convolution(*this, name, shape, start, device);
    };
    // The paper's images are 32 x 32: the digit's 28 x 28 with a border.
    c1_ = convolution("c1", {.in = 1, .out = 6, .kernel = 5, .padding = 2, .has_bias = true});
    c3_ = convolution("c3", {.in = 6, .out = 16, .kernel = 5, .has_bias = true});
    c5_ = convolution("c5", {.in = 16, .out = 120, .kernel = 5, .has_bias = true});
    f6_ = add_linear(*this, "f6", {84, 120}, fan_in_start(120), device);
    output_ = add_linear(*this, "output", {num_classes, 84}, fan_in_start(84), device);
  }

  at::Tensor forward(const at::Tensor& images) {   // [B, 1, 28, 28]
    at::Tensor x = at::tanh(c1_.forward(images));  // [B, 6, 28, 28]
    x = at::avg_pool2d(x, 2);                      // [B, 6, 14, 14]  S2
    x = at::tanh(c3_.forward(x));                  // [B, 16, 10, 10]
    x = at::avg_pool2d(x, 2);                      // [B, 16, 5, 5]   S4
    x = at::tanh(c5_.forward(x));                  // [B, 120, 1, 1]
    x = at::tanh(f6_.forward(at::flatten(x, 1)));  // [B, 84]
    return output_.forward(x);                     // [B, K]
  }

 private:
  Convolution c1_;
  Convolution c3_;
  Convolution c5_;
  Linear f6_;
  Linear output_;
};

}  // namespace

Model make_lenet5(const config::ModelConfig& config, Weights weights) {
  const int64_t num_classes = checked_image_sizes(config).num_classes;
  return image_model(config, std::make_shared<Lenet5Impl>(num_classes, device_of(weights)));
}

}  // namespace assay::models
