#include "models/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include "base/error.h"
#include "tests/models/reference.h"

namespace assay::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(BatchNorm, EqualsTorchInTrainingAndEvaluation) {
  torch::nn::Module parent;
  const BatchNorm own = add_batch_norm(parent, "bn", 5, at::kCPU);
  torch::nn::BatchNorm2d theirs(5);
  for (uint64_t step = 0; step < 3; ++step) {
    const at::Tensor x = uniform(step, {4, 5, 3, 2}).to(at::kFloat) * 3.0 + 1.0;
    EXPECT_TRUE(own.forward(x, true).equal(theirs->forward(x)));
  }
  EXPECT_TRUE(own.running_mean.equal(theirs->running_mean));
  EXPECT_TRUE(own.running_var.equal(theirs->running_var));
  EXPECT_EQ(own.num_batches_tracked.item<int64_t>(), 3);
  theirs->eval();
  const at::Tensor x = uniform(9, {1, 5, 1, 1}).to(at::kFloat);
  EXPECT_TRUE(own.forward(x, false).equal(theirs->forward(x)));
  EXPECT_EQ(own.num_batches_tracked.item<int64_t>(), 3);
}

TEST(BatchNorm, KeepsItsCounterAnIntegerWhenTheModelChangesType) {
  torch::nn::Module parent;
  const BatchNorm own = add_batch_norm(parent, "bn", 2, at::kCPU);
  own.num_batches_tracked.fill_((int64_t{1} << 24) + 1);  // no float32
  parent.to(at::kDouble);
  parent.to(at::kCPU, at::kFloat);
  EXPECT_EQ(own.num_batches_tracked.scalar_type(), at::kLong);
  EXPECT_EQ(own.running_mean.scalar_type(), at::kFloat);
  EXPECT_EQ(parent.named_buffers()["bn.num_batches_tracked"].scalar_type(), at::kLong);
}

TEST(BatchNorm, RefusesASingleValueAChannelInTraining) {
  torch::nn::Module parent;
  const BatchNorm own = add_batch_norm(parent, "bn", 2, at::kCPU);
  EXPECT_NO_THROW(own.forward(at::ones({1, 2, 1, 1}), false));
  try {
    own.forward(at::ones({1, 2, 1, 1}), true);
    FAIL() << "one value a channel was taken";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("[1, 2, 1, 1]"), HasSubstr("--batch_size")));
  }
  EXPECT_EQ(own.num_batches_tracked.item<int64_t>(), 0);
}

TEST(Layers, RegisterTheirTensorsUnderTheNameGiven) {
  torch::nn::Module parent;
  torch::nn::Module& group = add_group(parent, "stage");
  add_convolution(group, "conv", {.in = 4, .out = 6, .kernel = 3, .groups = 2}, he_start(),
                  at::kCPU);
  add_linear(group, "fc", {3, 6}, fan_in_start(6), at::kCPU);
  add_layer_norm(group, "ln", 7, 1e-6, at::kCPU);
  const auto parameters = parent.named_parameters();
  EXPECT_EQ(parameters["stage.conv.weight"].sizes(), at::IntArrayRef({6, 2, 3, 3}));
  EXPECT_EQ(parameters.find("stage.conv.bias"), nullptr);
  EXPECT_EQ(parameters["stage.fc.weight"].sizes(), at::IntArrayRef({3, 6}));
  EXPECT_EQ(parameters["stage.ln.bias"].sizes(), at::IntArrayRef({7}));
}

}  // namespace
}  // namespace assay::models
