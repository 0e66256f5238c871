#include "trainer/step/optimizer.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace assay::step {
namespace {

config::OptimizerConfig settings(const char* name) {
  config::OptimizerConfig config;
  config.name = name;
  config.weight_decay = 0.1;
  config.momentum = 0.9;
  return config;
}

// One matrix, which decays, and one bias, which does not; float64, so that only the formula counts.
std::vector<NamedTensor> two_parameters() {
  const auto options = torch::TensorOptions().dtype(torch::kFloat64);
  std::vector<NamedTensor> list{{"weight", torch::arange(1, 7, options).reshape({2, 3}) / 8},
                                {"bias", torch::arange(1, 4, options) / 4}};
  for (const NamedTensor& entry : list) entry.tensor.requires_grad_(true);
  allocate_gradients(list);
  return list;
}

void set_gradients(const std::vector<NamedTensor>& parameters, int step) {
  for (const NamedTensor& entry : parameters) {
    entry.tensor.mutable_grad().copy_(torch::cos(entry.tensor.detach() * (step + 1)));
  }
}

const at::Tensor kFinite = torch::zeros({1});
const at::Tensor kNonfinite = torch::ones({1});

// The published update written out for one tensor.
struct Reference {
  config::OptimizerConfig config;
  at::Tensor parameter, moment, square;
  double decay;
  Reference(const config::OptimizerConfig& settings, const at::Tensor& start)
      : config(settings),
        parameter(start.detach().clone()),
        moment(torch::zeros_like(start)),
        square(torch::zeros_like(start)),
        decay(start.dim() >= 2 ? settings.weight_decay : 0.0) {}

  void step(at::Tensor gradient, int t, double rate) {
    if (config.name != "adamw") gradient = gradient + decay * parameter;
    if (config.name == "sgd") {
      moment = config.momentum * moment + gradient;
      const at::Tensor direction = config.nesterov ? gradient + config.momentum * moment : moment;
      parameter = parameter - rate * direction;
      return;
    }
    if (config.name == "adamw") parameter = parameter * (1 - rate * decay);
    moment = config.adam_beta1 * moment + (1 - config.adam_beta1) * gradient;
    square = config.adam_beta2 * square + (1 - config.adam_beta2) * gradient * gradient;
    const at::Tensor m = moment / (1 - std::pow(config.adam_beta1, t));
    const at::Tensor v = square / (1 - std::pow(config.adam_beta2, t));
    parameter = parameter - rate * m / (v.sqrt() + config.adam_epsilon);
  }
};

void expect_follows_reference(const config::OptimizerConfig& config) {
  const torch::NoGradGuard no_grad;
  const auto parameters = two_parameters();
  std::vector<Reference> references;
  for (const NamedTensor& entry : parameters) references.emplace_back(config, entry.tensor);
  const auto optimizer = make_optimizer(config, parameters);
  for (int t = 1; t <= 10; ++t) {
    set_gradients(parameters, t);
    const double rate = 0.01 * t;
    for (size_t i = 0; i < parameters.size(); ++i) {
      references[i].step(parameters[i].tensor.grad().clone(), t, rate);
    }
    optimizer->step(rate, kFinite);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    // Ten updates of a dozen rounded operations each: far below 1e-13 of the value.
    EXPECT_TRUE(torch::allclose(parameters[i].tensor, references[i].parameter, 1e-13, 1e-13))
        << config.name << " " << parameters[i].name << "\n"
        << parameters[i].tensor << "\n"
        << references[i].parameter;
  }
}

TEST(Optimizer, AdamWFollowsItsPaper) { expect_follows_reference(settings("adamw")); }
TEST(Optimizer, AdamFollowsItsPaper) { expect_follows_reference(settings("adam")); }
TEST(Optimizer, SgdFollowsPyTorchsMomentum) { expect_follows_reference(settings("sgd")); }
TEST(Optimizer, SgdFollowsNesterov) {
  config::OptimizerConfig config = settings("sgd");
  config.nesterov = true;
  expect_follows_reference(config);
}
TEST(Optimizer, SgdWithoutMomentumHasNoState) {
  config::OptimizerConfig config = settings("sgd");
  config.momentum = 0;
  EXPECT_TRUE(make_optimizer(config, two_parameters())->state().empty());
  expect_follows_reference(config);
}

TEST(Optimizer, ANonfiniteStepChangesNothing) {
  const torch::NoGradGuard no_grad;
  for (const char* name : {"adamw", "adam", "sgd"}) {
    const auto parameters = two_parameters();
    const auto optimizer = make_optimizer(settings(name), parameters);
    set_gradients(parameters, 1);
    optimizer->step(0.1, kFinite);
    std::vector<at::Tensor> before;
    for (const auto& entry : parameters) before.push_back(entry.tensor.clone());
    for (const auto& entry : optimizer->state()) before.push_back(entry.tensor.clone());
    parameters[0].tensor.mutable_grad().fill_(std::numeric_limits<double>::quiet_NaN());
    optimizer->step(0.1, kNonfinite);
    std::vector<at::Tensor> after;
    for (const auto& entry : parameters) after.push_back(entry.tensor);
    for (const auto& entry : optimizer->state()) after.push_back(entry.tensor);
    for (size_t i = 0; i < before.size(); ++i)
      EXPECT_TRUE(before[i].equal(after[i])) << name << " tensor " << i;
  }
}

TEST(Optimizer, StateIsNamedByParameterAndThereFromTheStart) {
  std::vector<std::string> names;
  for (const auto& entry : make_optimizer(settings("adamw"), two_parameters())->state())
    names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"exp_avg/weight", "exp_avg/bias", "exp_avg_sq/weight",
                                             "exp_avg_sq/bias", "step"}));
}

}  // namespace
}  // namespace assay::step
