// How image models start: deviations and bounds against the closed forms of their papers.
#include <cmath>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include "models/model.h"

namespace assay::models {
namespace {

Model made(const std::string& name, int64_t image_size) {
  torch::manual_seed(21);
  config::ModelConfig config;
  config.name = name;
  config.image_size = image_size;
  return make_model(config);
}

at::Tensor parameter(const Model& model, const std::string& name) {
  const auto parameters = model.module->named_parameters();
  EXPECT_TRUE(parameters.contains(name)) << name;
  return parameters[name].detach().to(at::kDouble);
}

// Mean 0 and the deviation within five standard errors; `kurtosis` of the distribution: 3 normal,
// 1.8 uniform.
void expect_spread(const at::Tensor& values, double stddev, double kurtosis, const char* what) {
  const double count = static_cast<double>(values.numel());
  EXPECT_NEAR(values.mean().item<double>(), 0.0, 5.0 * stddev / std::sqrt(count)) << what;
  EXPECT_NEAR(values.std().item<double>(), stddev,
              5.0 * stddev * std::sqrt((kurtosis - 1.0) / (4.0 * count)))
      << what;
}

void expect_all(const at::Tensor& values, double expected, const std::string& what) {
  EXPECT_TRUE(values.equal(at::full_like(values, expected))) << what;
}

TEST(InitialWeights, OfConvolutionsAreNormalWithTwoOverFanOut) {
  const Model resnet = made("resnet18", 32);
  expect_spread(parameter(resnet, "conv1.weight"), std::sqrt(2.0 / (64 * 49)), 3.0, "conv1");
  expect_spread(parameter(resnet, "layer2.0.downsample.0.weight"), std::sqrt(2.0 / 128), 3.0,
                "downsample");
  expect_spread(parameter(resnet, "layer4.1.conv2.weight"), std::sqrt(2.0 / (512 * 9)), 3.0,
                "conv2");
  const Model mobilenet = made("mobilenet_v2", 32);
  // Each of the 960 channels of a depthwise convolution counts in fan_out.
  expect_spread(parameter(mobilenet, "features.17.conv.1.0.weight"), std::sqrt(2.0 / (960 * 9)),
                3.0, "depthwise");
}

TEST(InitialWeights, OfClassifiersAreThoseOfTorchvision) {
  const Model resnet = made("resnet18", 32);
  const double bound = 1.0 / std::sqrt(512.0);
  expect_spread(parameter(resnet, "fc.weight"), bound / std::sqrt(3.0), 1.8, "fc.weight");
  expect_spread(parameter(resnet, "fc.bias"), bound / std::sqrt(3.0), 1.8, "fc.bias");
  EXPECT_LE(parameter(resnet, "fc.bias").abs().max().item<double>(), bound * (1.0 + 1e-6));
  const Model mobilenet = made("mobilenet_v2", 32);
  expect_spread(parameter(mobilenet, "classifier.1.weight"), 0.01, 3.0, "classifier");
  expect_all(parameter(mobilenet, "classifier.1.bias"), 0.0, "classifier.1.bias");
}

TEST(InitialWeights, OfNormsAreOneAndZeroAndTheirStatisticsToo) {
  const Model model = made("resnet20_cifar", 32);
  for (const auto& entry : model.module->named_parameters()) {
    if (entry.key().find("bn") == std::string::npos) continue;
    expect_all(entry.value().detach().to(at::kDouble), entry.key().ends_with("weight") ? 1.0 : 0.0,
               entry.key());
  }
  for (const auto& entry : model.module->named_buffers()) {
    expect_all(entry.value().to(at::kDouble), entry.key().ends_with("running_var") ? 1.0 : 0.0,
               entry.key());
  }
}

TEST(InitialWeights, OfVisionTransformersAreThoseOfTorchvision) {
  const Model model = made("vit_ti_16", 224);
  const std::string layer = "encoder.layers.encoder_layer_11.";
  expect_spread(parameter(model, "conv_proj.weight"), std::sqrt(1.0 / 768), 3.0, "conv_proj");
  expect_all(parameter(model, "conv_proj.bias"), 0.0, "conv_proj.bias");
  expect_all(parameter(model, "class_token"), 0.0, "class_token");
  expect_spread(parameter(model, "encoder.pos_embedding"), 0.02, 3.0, "pos_embedding");
  const double in_bound = std::sqrt(6.0 / (192 + 3 * 192));
  expect_spread(parameter(model, layer + "self_attention.in_proj_weight"),
                in_bound / std::sqrt(3.0), 1.8, "in_proj");
  expect_spread(parameter(model, layer + "self_attention.out_proj.weight"),
                1.0 / std::sqrt(3.0 * 192), 1.8, "out_proj");
  expect_all(parameter(model, layer + "self_attention.out_proj.bias"), 0.0, "out_proj.bias");
  const double mlp_bound = std::sqrt(6.0 / (192 + 768));
  expect_spread(parameter(model, layer + "mlp.3.weight"), mlp_bound / std::sqrt(3.0), 1.8, "mlp.3");
  expect_spread(parameter(model, layer + "mlp.0.bias"), 1e-6, 3.0, "mlp.0.bias");
  expect_all(parameter(model, "heads.head.weight"), 0.0, "heads.head.weight");
}

TEST(InitialWeights, OfLenetAreUniformWithinTheRootOfFanIn) {
  const Model model = made("lenet5", 28);
  expect_spread(parameter(model, "c5.weight"), 1.0 / std::sqrt(3.0 * 400), 1.8, "c5");
  EXPECT_LE(parameter(model, "f6.bias").abs().max().item<double>(),
            1.0 / std::sqrt(120.0) * (1.0 + 1e-6));
}

}  // namespace
}  // namespace assay::models
