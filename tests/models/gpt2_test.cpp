#include "models/gpt2.h"

#include <cmath>
#include <functional>
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

config::ModelConfig small_config() {
  config::ModelConfig config;
  config.name = "gpt_tiny";
  config.n_layer = 2;
  config.n_head = 4;
  config.n_embd = 32;
  config.n_positions = 12;
  config.vocab_size = 19;
  return config;
}

Model small_model(const config::ModelConfig& config = small_config()) {
  torch::manual_seed(11);
  return make_model(config);
}

at::Tensor numbered_tokens(at::IntArrayRef shape) {
  return at::arange(shape[0] * shape[1], at::kLong).mul(7).remainder(19).reshape(shape);
}

at::Tensor parameter(const Model& model, const std::string& name) {
  return model.module->named_parameters()[name].detach();
}

template <class Thrown>
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Thrown& error) {
    return error.what();
  }
  return "nothing of the expected type was thrown";
}

struct GoldenStep {
  Model model;
  at::Tensor logits;
  at::Tensor loss;
};

// Weights, tokens and targets of tests/golden/gpt2_small.json, forward and backward.
GoldenStep golden_step(const nlohmann::json& golden, at::ScalarType type) {
  Model model = small_model();
  model.module->to(type);
  fill_parameters(model, golden["parameter_scale"].get<double>());
  const auto shape = golden["input_shape"].get<std::vector<int64_t>>();
  const at::Tensor ids = at::tensor(golden["ids"].get<std::vector<int64_t>>()).reshape(shape);
  const at::Tensor targets = at::tensor(golden["targets"].get<std::vector<int64_t>>());
  const at::Tensor logits = model.forward(ids);
  const at::Tensor loss = cross_entropy_sum(logits.reshape({-1, model.num_classes}), targets,
                                            golden["label_smoothing"].get<double>());
  loss.backward();
  return {model, logits.detach(), loss.detach()};
}

// Same operations with sums in another order: sums of up to 128 terms round by sqrt(128) u
// norm-wise (u: unit roundoff), about 30 operations follow each other forward and backward, and
// three times the random walk of their errors: 3 * sqrt(30 * 128) = 186.
constexpr double kRoundoffs = 186.0;

void expect_golden_step(at::ScalarType type, double unit_roundoff) {
  const nlohmann::json golden = read_golden("gpt2_small");
  const double bound = kRoundoffs * unit_roundoff;

  const GoldenStep step = golden_step(golden, type);

  EXPECT_LT(relative_error(step.logits, golden_tensor(golden["logits"], step.logits.sizes())),
            bound);
  const double loss = golden_number(golden["loss_sum"]);
  EXPECT_NEAR(step.loss.item<double>(), loss, bound * loss);
  expect_gradients_match(step.model, golden["gradients"], bound);
}

TEST(Gpt2, LogitsLossAndGradientsEqualHuggingFaceInDouble) {
  expect_golden_step(at::kDouble, std::ldexp(1.0, -53));
}

TEST(Gpt2, LogitsLossAndGradientsEqualHuggingFaceInFloat) {
  expect_golden_step(at::kFloat, std::ldexp(1.0, -24));
}

TEST(Gpt2, ParameterListTiesTheOutputLayerToTheTokenTable) {
  const Model model = small_model();
  const auto parameters = model.module->named_parameters();
  EXPECT_EQ(parameters.size(), 2u + 2u * 12u + 2u);
  EXPECT_EQ(parameters.find("lm_head.weight"), nullptr);
  EXPECT_TRUE(model.module->named_buffers().is_empty());
}

TEST(Gpt2, OutputLayerSendsGradientToRowsOfUnusedTokens) {
  const Model model = small_model();
  model.forward(at::zeros({1, 3}, at::kLong)).pow(2).sum().backward();
  const at::Tensor row = model.module->named_parameters()["transformer.wte.weight"].grad()[18];
  EXPECT_GT(row.abs().max().item<float>(), 0.0f);
}

TEST(Gpt2, LaterTokensDoNotChangeEarlierLogits) {
  const Model model = small_model();
  const at::Tensor tokens = numbered_tokens({2, 8});
  at::Tensor changed = tokens.clone();
  changed.narrow(1, 5, 3).fill_(1);

  const at::Tensor logits = model.forward(tokens).detach();
  const at::Tensor changed_logits = model.forward(changed).detach();

  EXPECT_TRUE(logits.narrow(1, 0, 5).equal(changed_logits.narrow(1, 0, 5)));
  EXPECT_FALSE(logits.narrow(1, 5, 3).equal(changed_logits.narrow(1, 5, 3)));
}

TEST(Gpt2, SequenceAloneGivesItsLogitsInABatch) {
  const Model model = small_model();
  const at::Tensor tokens = numbered_tokens({3, 7});
  const at::Tensor together = model.forward(tokens).detach();
  const at::Tensor alone = model.forward(tokens.narrow(0, 1, 1)).detach();
  ASSERT_EQ(alone.sizes(), at::IntArrayRef({1, 7, 19}));
  // Matrix products of another height may sum in another order: 128 * 2^-23 = 1.5e-5.
  EXPECT_LT(relative_error(alone, together.narrow(0, 1, 1)), 1.5e-5);
}

TEST(Gpt2, WithoutDropoutTrainingAndEvaluationAgreeBitwise) {
  const Model model = small_model();
  const at::Tensor tokens = numbered_tokens({2, 12});
  const at::Tensor training = model.forward(tokens).detach();
  EXPECT_TRUE(training.equal(model.forward(tokens).detach()));
  model.module->eval();
  EXPECT_TRUE(training.equal(model.forward(tokens).detach()));
}

TEST(Gpt2, DropoutActsInTrainingOnly) {
  config::ModelConfig config = small_config();
  config.dropout = 0.3;
  const Model model = small_model(config);
  const at::Tensor tokens = numbered_tokens({2, 12});
  EXPECT_FALSE(model.forward(tokens).equal(model.forward(tokens)));
  model.module->eval();
  EXPECT_TRUE(model.forward(tokens).equal(model.forward(tokens)));
}

TEST(Gpt2, SeedDecidesTheInitialWeights) {
  const Model first = small_model();
  const Model second = small_model();
  const Model third = make_model(small_config());
  const std::string name = "transformer.h.1.mlp.c_fc.weight";
  EXPECT_TRUE(parameter(first, name).equal(parameter(second, name)));
  EXPECT_FALSE(parameter(first, name).equal(parameter(third, name)));
}

TEST(Gpt2, InitialWeightsHaveThePublishedSpread) {
  torch::manual_seed(5);
  config::ModelConfig config = small_config();
  config.n_embd = 128;
  config.vocab_size = 256;
  config.n_positions = 128;
  const Model model = make_model(config);
  const double residual = 0.02 / std::sqrt(4.0);  // two residual layers a block, two blocks
  for (const auto& item : model.module->named_parameters()) {
    const at::Tensor value = item.value().detach().to(at::kDouble);
    const double mean = value.mean().item<double>();
    if (item.key().ends_with("bias")) {
      EXPECT_EQ(value.abs().max().item<double>(), 0.0) << item.key();
    } else if (item.key().find("ln_") != std::string::npos) {
      EXPECT_TRUE(value.equal(at::ones_like(value))) << item.key();
    } else {
      const double stddev = item.key().ends_with("c_proj.weight") ? residual : 0.02;
      const double count = static_cast<double>(value.numel());
      // Five standard errors of a normal sample's mean and standard deviation.
      EXPECT_NEAR(mean, 0.0, 5.0 * stddev / std::sqrt(count)) << item.key();
      EXPECT_NEAR(value.std().item<double>(), stddev, 5.0 * stddev / std::sqrt(2.0 * count))
          << item.key();
    }
  }
}

TEST(Gpt2, RefusesAWidthThatHeadsDoNotDivide) {
  config::ModelConfig config = small_config();
  config.n_embd = 30;
  EXPECT_THAT(message_of<ConfigError>([&] { make_model(config); }),
              AllOf(HasSubstr("model.n_embd is 30"), HasSubstr("model.n_head, 4"),
                    HasSubstr("model.n_embd=32")));
}

TEST(Gpt2, RefusesSizesOutsideTheirRange) {
  config::ModelConfig no_layer = small_config();
  no_layer.n_layer = 0;
  EXPECT_THAT(message_of<ConfigError>([&] { make_model(no_layer); }),
              HasSubstr("model.n_layer is 0, must be from 1"));
  config::ModelConfig negative = small_config();
  negative.vocab_size = -5;
  EXPECT_THAT(message_of<ConfigError>([&] { model_shape(negative); }),
              HasSubstr("model.vocab_size is -5"));
  config::ModelConfig huge = small_config();
  huge.n_positions = int64_t{1} << 40;
  EXPECT_THAT(message_of<ConfigError>([&] { make_model(huge); }),
              HasSubstr("model.n_positions is 1099511627776"));
}

TEST(Gpt2, RefusesDropoutOfOneAndNan) {
  for (const double dropout : {1.0, -0.1, std::nan("")}) {
    config::ModelConfig config = small_config();
    config.dropout = dropout;
    EXPECT_THAT(message_of<ConfigError>([&] { make_model(config); }),
                HasSubstr("model.dropout is"));
  }
}

TEST(Gpt2, RefusesASequenceLongerThanItsContext) {
  const Model model = small_model();
  EXPECT_THAT(message_of<ConfigError>([&] {
                model.forward(numbered_tokens({1, 13}));
              }),
              AllOf(HasSubstr("13 tokens"), HasSubstr("at most 12"), HasSubstr("gpt_tiny")));
}

TEST(Gpt2, RefusesTokensOutsideItsVocabulary) {
  const Model model = small_model();
  EXPECT_THAT(message_of<DataError>([&] {
                model.forward(at::full({1, 2}, 19, at::kLong));
              }),
              AllOf(HasSubstr("token id 19"), HasSubstr("from 0 to 18")));
  EXPECT_THAT(message_of<DataError>([&] {
                model.forward(at::full({1, 2}, -1, at::kLong));
              }),
              HasSubstr("token id -1"));
}

TEST(Gpt2, RefusesTokensOfAnotherShapeOrType) {
  const Model model = small_model();
  EXPECT_THAT(message_of<InternalError>([&] { model.forward(at::zeros({4}, at::kLong)); }),
              AllOf(HasSubstr("[4]"), HasSubstr("[B, T]")));
  EXPECT_THAT(message_of<InternalError>([&] {
                model.forward(at::zeros({1, 4}));
              }),
              HasSubstr("Float"));
}

}  // namespace
}  // namespace assay::models
