#include "models/mnist_cnn.h"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include "base/error.h"
#include "models/losses.h"
#include "tests/models/reference.h"

namespace assay::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Model mnist_cnn(std::optional<double> dropout) {
  torch::manual_seed(3);
  config::ModelConfig config;
  config.dropout = dropout;
  return make_model(config);
}

TEST(MnistCnn, LogitsLossAndGradientsEqualPythonInDouble) {
  const nlohmann::json golden = read_golden("mnist_cnn");
  const Model model = mnist_cnn(0.0);
  model.module->to(at::kDouble);
  fill_parameters(model, golden["parameter_scale"].get<double>());
  const auto shape = golden["input_shape"].get<std::vector<int64_t>>();
  const at::Tensor images =
      uniform(golden["input_stream"].get<uint64_t>(), shape) * golden["input_scale"].get<double>();
  const at::Tensor targets = at::tensor(golden["targets"].get<std::vector<int64_t>>());

  const at::Tensor logits = model.forward(images);
  const at::Tensor loss = cross_entropy_sum(logits, targets, 0.0);
  loss.backward();

  // Same operations with sums in another order: the longest sum has 9,216 terms and rounds by
  // sqrt(9216) u norm-wise, about ten operations follow each other forward and backward, and three
  // times the random walk of their errors: 3 * sqrt(10 * 9216) * 2^-53.
  const double bound = 911.0 * std::ldexp(1.0, -53);
  EXPECT_LT(relative_error(logits, golden_tensor(golden["logits"], logits.sizes())), bound);
  const double expected = golden_number(golden["loss_sum"]);
  EXPECT_NEAR(loss.item<double>(), expected, bound * expected);
  expect_gradients_match(model, golden["gradients"], bound);
}

TEST(MnistCnn, SeedGivesTheInitialWeightsOfThePythonExample) {
  const nlohmann::json golden = read_golden("mnist_cnn_initial_weights");
  torch::manual_seed(golden["seed"].get<uint64_t>());
  const Model model = make_model(config::ModelConfig{});
  size_t index = 0;
  for (const auto& parameter : model.module->named_parameters()) {
    const nlohmann::json& record = golden["parameters"][index++];
    ASSERT_EQ(parameter.key(), record["name"].get<std::string>());
    const at::Tensor values = parameter.value().detach().to(at::kDouble).flatten();
    EXPECT_TRUE(values.narrow(0, 0, 4).equal(golden_tensor(record["first"], {4})))
        << parameter.key();
    // Values are multiples of 2^-31 or coarser and below 1, their sums of up to 2^21 of them
    // below 2^21: double holds such sums to 2^-32 in any order.
    EXPECT_NEAR(values.sum().item<double>(), golden_number(record["sum"]), 1e-9) << parameter.key();
  }
}

TEST(MnistCnn, InitialWeightsAreUniformWithinTheRootOfFanIn) {
  const Model model = mnist_cnn(std::nullopt);
  const auto parameters = model.module->named_parameters();
  for (const char* layer : {"conv1", "conv2", "fc1", "fc2"}) {
    const at::Tensor weight = parameters[std::string(layer) + ".weight"].detach();
    const double bound = 1.0 / std::sqrt(static_cast<double>(weight[0].numel()));
    EXPECT_LE(weight.abs().max().item<double>(), bound * (1.0 + 1e-6)) << layer;
    // Standard deviation of a uniform sample: bound / sqrt(3), five standard errors of
    // sqrt((1.8 - 1) / (4 n)), 1.8 being the kurtosis.
    const double count = static_cast<double>(weight.numel());
    const double expected = bound / std::sqrt(3.0);
    EXPECT_NEAR(weight.std().item<double>(), expected, 5.0 * expected * std::sqrt(0.2 / count))
        << layer;
  }
}

TEST(MnistCnn, TrainsWithTheDropoutOfTheExample) {
  const Model model = mnist_cnn(std::nullopt);
  const at::Tensor images = uniform(1, {2, 1, 28, 28}).to(at::kFloat);
  EXPECT_FALSE(model.forward(images).equal(model.forward(images)));
  model.module->eval();
  EXPECT_TRUE(model.forward(images).equal(model.forward(images)));
}

TEST(MnistCnn, DropoutOfZeroSwitchesBothOff) {
  const Model model = mnist_cnn(0.0);
  const at::Tensor images = uniform(1, {2, 1, 28, 28}).to(at::kFloat);
  const at::Tensor training = model.forward(images).detach();
  model.module->eval();
  EXPECT_TRUE(training.equal(model.forward(images).detach()));
}

TEST(MnistCnn, ImageAloneGivesItsLogitsInABatch) {
  const Model model = mnist_cnn(0.0);
  const at::Tensor images = uniform(1, {3, 1, 28, 28}).to(at::kFloat);
  const at::Tensor alone = model.forward(images.narrow(0, 2, 1)).detach();
  ASSERT_EQ(alone.sizes(), at::IntArrayRef({1, 10}));
  // Other batch sizes sum in another order: sqrt(9216) * 2^-23 = 1e-5 for random signs.
  EXPECT_LT(relative_error(alone, model.forward(images).detach().narrow(0, 2, 1)), 1e-5);
}

TEST(MnistCnn, RefusesImagesOfAnotherShape) {
  const Model model = mnist_cnn(0.0);
  try {
    model.forward(at::zeros({2, 3, 32, 32}));
    FAIL() << "images of 3 x 32 x 32 were taken";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("[2, 3, 32, 32]"), HasSubstr("[B, 1, 28, 28]")));
  }
}

TEST(MnistCnn, RefusesDropoutOfOne) { EXPECT_THROW(mnist_cnn(1.0), ConfigError); }

}  // namespace
}  // namespace assay::models
