#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include "base/error.h"
#include "models/model.h"
#include "tests/models/reference.h"
#include "trainer/config/config_io.h"

namespace assay::models {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

config::ModelConfig named(const std::string& name) {
  config::ModelConfig config;
  config.name = name;
  return config;
}

class EveryModel : public ::testing::TestWithParam<std::string> {};

// The models of parameters.json; the other image models have lists of their own.
class RecordedModel : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordedModel, HasTheParameterCountOfItsPythonReference) {
  const nlohmann::json golden = read_golden("parameters");
  const Model model = make_model(named(GetParam()), Weights::kShapesOnly);
  EXPECT_EQ(parameter_count(model), golden["count"][GetParam()].get<int64_t>());
}

// The golden lists of the deepest models hold their first and last 14 parameters.
TEST_P(RecordedModel, HasTheParameterNamesAndShapesOfItsPythonReference) {
  const nlohmann::json golden = read_golden("parameters")["parameters"][GetParam()];
  const auto parameters =
      make_model(named(GetParam()), Weights::kShapesOnly).module->named_parameters();
  ASSERT_GE(parameters.size(), golden.size());
  const bool is_whole = parameters.size() == golden.size();
  for (size_t i = 0; i < golden.size(); ++i) {
    const bool is_from_end = !is_whole && i >= golden.size() / 2;
    const auto& actual = parameters[is_from_end ? parameters.size() - golden.size() + i : i];
    EXPECT_EQ(actual.key(), golden[i]["name"].get<std::string>());
    EXPECT_EQ(actual.value().sizes().vec(), golden[i]["shape"].get<std::vector<int64_t>>())
        << actual.key();
    EXPECT_TRUE(actual.value().is_meta()) << actual.key();
    EXPECT_TRUE(actual.value().requires_grad()) << actual.key();
    EXPECT_EQ(actual.value().scalar_type(), at::kFloat) << actual.key();
  }
}

TEST_P(EveryModel, HasTheShapeThatIsKnownWithoutIt) {
  const Model model = make_model(named(GetParam()), Weights::kShapesOnly);
  const ModelShape shape = model_shape(named(GetParam()));
  EXPECT_EQ(model.name, GetParam());
  EXPECT_EQ(model.task, shape.task);
  EXPECT_EQ(model.num_classes, shape.num_classes);
  EXPECT_EQ(model.image_shape, shape.image_shape);
  EXPECT_EQ(model.context_length, shape.context_length);
}

TEST_P(EveryModel, AsShapesOnlyLeavesTheGeneratorAlone) {
  torch::manual_seed(8);
  const at::Tensor expected = at::rand({4});
  torch::manual_seed(8);
  make_model(named(GetParam()), Weights::kShapesOnly);
  EXPECT_TRUE(at::rand({4}).equal(expected));
}

std::string test_name(const ::testing::TestParamInfo<std::string>& parameterized) {
  std::string name;
  for (const char c : parameterized.param) {
    if (c != '_') name.push_back(c);
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Names, EveryModel,
                         ::testing::ValuesIn(config::model_names().begin(),
                                             config::model_names().end()),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Names, RecordedModel,
                         ::testing::Values("mnist_cnn", "gpt_tiny", "gpt2", "gpt2_medium",
                                           "gpt2_large", "gpt2_xl"),
                         test_name);

TEST(MakeModel, Gpt2HasItsPublishedSize) {
  EXPECT_EQ(parameter_count(make_model(named("gpt2"), Weights::kShapesOnly)), 124'439'808);
}

TEST(MakeModel, ShapesFollowTheConfiguration) {
  config::ModelConfig config = named("gpt2");
  config.vocab_size = 300;
  config.n_positions = 64;
  const ModelShape shape = model_shape(config);
  EXPECT_EQ(shape.num_classes, 300);
  EXPECT_EQ(shape.context_length, 64);
  EXPECT_THAT(shape.image_shape, IsEmpty());
  EXPECT_THAT(model_shape(named("mnist_cnn")).image_shape, ElementsAre(1, 28, 28));
}

TEST(MakeModel, RefusesAnUnknownNameWithTheNearestOne) {
  try {
    make_model(named("mnist_cn"));
    FAIL() << "the unknown model was made";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"mnist_cn\""), HasSubstr("gpt2_xl"),
                                    HasSubstr("--model mnist_cnn")));
  }
  EXPECT_THROW(model_shape(named("")), ConfigError);
}

}  // namespace
}  // namespace assay::models
