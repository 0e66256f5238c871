// Every image model against torchvision: logits, loss, all gradients and running statistics of one
// step, and how the weights start.
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/text.h"
#include "models/losses.h"
#include "tests/models/reference.h"

namespace assay::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kNames[] = {"lenet5",       "vgg16",    "vgg16_bn",       "resnet18",
                                  "resnet34",     "resnet50", "resnet20_cifar", "resnet56_cifar",
                                  "mobilenet_v2", "vit_b_16", "vit_s_16",       "vit_ti_16"};

// Read once: the files hold long lists.
const nlohmann::json& golden(const std::string& file) {
  static std::map<std::string, nlohmann::json> files;
  const auto found = files.find(file);
  return found != files.end() ? found->second
                              : files.emplace(file, read_golden(file)).first->second;
}

config::ModelConfig small(const std::string& name) {
  const nlohmann::json& record = golden("image_models")[name];
  config::ModelConfig config;
  config.name = name;
  config.num_classes = record["num_classes"].get<int64_t>();
  config.image_size = record["image_size"].get<int64_t>();
  config.dropout = 0.0;
  return config;
}

at::Tensor golden_images(const Model& model, const nlohmann::json& record) {
  std::vector<int64_t> shape = {record["batch"].get<int64_t>()};
  shape.insert(shape.end(), model.image_shape.begin(), model.image_shape.end());
  return uniform(record["input_stream"].get<uint64_t>(), shape) * 4.0;
}

class EveryImageModel : public ::testing::TestWithParam<const char*> {};

// Same operations with sums in another order: the longest sums (25,088 terms in VGG's first fully
// connected layer, 3 x 64 x 64 places in a bias gradient) round by sqrt(25088) u norm-wise, up to
// 120 operations follow each other forward and backward, and three times the random walk of their
// errors: 3 * sqrt(120 * 25088) = 5205. Batch norm over as few as twelve values divides by their
// deviation and may widen an error ten times.
constexpr double kBound = 10.0 * 5205.0 * 1.1102230246251565e-16;

TEST_P(EveryImageModel, OneStepEqualsTorchvisionInDouble) {
  const nlohmann::json& record = golden("image_models")[GetParam()];
  const Model model = make_model(small(GetParam()));
  model.module->to(at::kDouble);
  fill_by_fan_in(model);
  const at::Tensor images = golden_images(model, record);
  const at::Tensor targets = at::tensor(record["targets"].get<std::vector<int64_t>>());

  const at::Tensor logits = model.forward(images);
  const at::Tensor loss = cross_entropy_sum(logits, targets, 0.0);
  loss.backward();

  EXPECT_LT(relative_error(logits, golden_tensor(record["logits"], logits.sizes())), kBound);
  const double expected_loss = golden_number(record["loss_sum"]);
  EXPECT_NEAR(loss.item<double>(), expected_loss, kBound * expected_loss);
  expect_gradients_match(model, record["gradients"], kBound);
  const auto buffers = model.module->named_buffers();
  ASSERT_EQ(buffers.size(), record["buffers"].size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(buffers[i].key(), record["buffers"][i]["name"].get<std::string>());
    const double norm = golden_number(record["buffers"][i]["norm"]);
    EXPECT_NEAR(buffers[i].value().to(at::kDouble).norm().item<double>(), norm, kBound * norm)
        << buffers[i].key();
  }
  model.module->eval();
  const at::NoGradGuard no_grad;
  EXPECT_LT(relative_error(model.forward(images),
                           golden_tensor(record["evaluation_logits"], logits.sizes())),
            kBound);
}

TEST_P(EveryImageModel, HasTheNamesShapesAndCountOfTorchvision) {
  const nlohmann::json& record = golden("image_parameters")[GetParam()];
  config::ModelConfig config;
  config.name = GetParam();
  const Model model = make_model(config, Weights::kShapesOnly);
  const auto described = [](const auto& entries) {
    std::vector<std::string> lines;
    for (const auto& entry : entries) {
      std::vector<std::string> sizes;
      for (const int64_t size : entry.value().sizes()) sizes.push_back(cat(size));
      EXPECT_TRUE(entry.value().is_meta()) << entry.key();
      lines.push_back(cat(entry.key(), " ", sizes.empty() ? "scalar" : join(sizes, "x")));
    }
    return lines;
  };
  EXPECT_EQ(described(model.module->named_parameters()),
            record["parameters"].get<std::vector<std::string>>());
  EXPECT_EQ(described(model.module->named_buffers()),
            record["buffers"].get<std::vector<std::string>>());
  EXPECT_EQ(parameter_count(model), record["count"].get<int64_t>());
  EXPECT_EQ(model.num_classes, record["num_classes"].get<int64_t>());
  EXPECT_EQ(model.image_shape.back(), record["image_size"].get<int64_t>());
}

INSTANTIATE_TEST_SUITE_P(Names, EveryImageModel, ::testing::ValuesIn(kNames),
                         [](const auto& parameterized) {
                           std::string name;
                           for (const char* c = parameterized.param; *c != 0; ++c) {
                             if (*c != '_') name.push_back(*c);
                           }
                           return name;
                         });

int64_t count_of(const char* name) {
  config::ModelConfig config;
  config.name = name;
  return parameter_count(make_model(config, Weights::kShapesOnly));
}

TEST(ImageModels, HaveTheirPublishedParameterCounts) {
  EXPECT_EQ(count_of("vgg16"), 138'357'544);
  EXPECT_EQ(count_of("resnet50"), 25'557'032);
  EXPECT_EQ(count_of("mobilenet_v2"), 3'504'872);
  EXPECT_EQ(count_of("vit_b_16"), 86'567'656);
  // He et al. 2016, table 6: 0.27 M and 0.85 M, rounded.
  EXPECT_NEAR(static_cast<double>(count_of("resnet20_cifar")), 0.27e6, 0.005e6);
  EXPECT_NEAR(static_cast<double>(count_of("resnet56_cifar")), 0.85e6, 0.005e6);
}

config::ModelConfig tiny(const std::string& name, int64_t image_size) {
  config::ModelConfig config;
  config.name = name;
  config.image_size = image_size;
  config.num_classes = 5;
  return config;
}

TEST(ImageModels, TakeImagesOfOddSizes) {
  for (const char* name : {"resnet18", "resnet20_cifar", "mobilenet_v2"}) {
    for (const int64_t side : {33, 47}) {
      torch::manual_seed(2);
      const Model model = make_model(tiny(name, side));
      const at::Tensor logits = model.forward(uniform(1, {2, 3, side, side}).to(at::kFloat));
      EXPECT_EQ(logits.sizes(), at::IntArrayRef({2, 5})) << name;
      logits.sum().backward();
      for (const auto& parameter : model.module->named_parameters()) {
        EXPECT_TRUE(parameter.value().grad().isfinite().all().item<bool>()) << parameter.key();
      }
    }
  }
}

TEST(ImageModels, SeedDecidesTheInitialWeights) {
  for (const char* name : {"lenet5", "resnet20_cifar", "mobilenet_v2", "vit_ti_16"}) {
    config::ModelConfig config;
    config.name = name;
    const auto made = [&](uint64_t seed) {
      torch::manual_seed(seed);
      std::vector<at::Tensor> values;
      for (const at::Tensor& value : make_model(config).module->parameters()) {
        values.push_back(value.detach().flatten());
      }
      return at::cat(values);
    };
    EXPECT_TRUE(made(3).equal(made(3))) << name;
    EXPECT_FALSE(made(3).equal(made(4))) << name;
  }
}

TEST(ImageModels, GiveTheSameStepTwice) {
  for (const char* name : {"resnet20_cifar", "vit_ti_16"}) {
    const auto gradients = [&] {
      torch::manual_seed(6);
      const Model model = make_model(tiny(name, 32));
      fill_by_fan_in(model);
      model.forward(uniform(2, {4, 3, 32, 32}).to(at::kFloat)).square().sum().backward();
      std::vector<at::Tensor> values;
      for (const at::Tensor& value : model.module->parameters()) {
        values.push_back(value.grad().flatten());
      }
      return at::cat(values);
    };
    EXPECT_TRUE(gradients().equal(gradients())) << name;
  }
}

TEST(ImageModels, DropoutActsInTrainingOnlyAndZeroSwitchesItOff) {
  for (const char* name : {"mobilenet_v2", "vit_ti_16"}) {
    config::ModelConfig config = tiny(name, 32);
    config.dropout = 0.5;
    torch::manual_seed(4);
    const Model dropping = make_model(config);
    fill_by_fan_in(dropping);
    const at::Tensor images = uniform(1, {4, 3, 32, 32}).to(at::kFloat);
    EXPECT_FALSE(dropping.forward(images).equal(dropping.forward(images))) << name;
    dropping.module->eval();
    EXPECT_TRUE(dropping.forward(images).equal(dropping.forward(images))) << name;
    config.dropout = 0.0;
    const Model without = make_model(config);
    EXPECT_TRUE(without.forward(images).equal(without.forward(images))) << name;
  }
}

TEST(ImageModels, RefuseImagesOfAnotherShape) {
  const Model model = make_model(tiny("resnet20_cifar", 32));
  try {
    model.forward(at::zeros({2, 1, 28, 28}));
    FAIL() << "images of another shape were taken";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("resnet20_cifar got images of shape [2, 1, 28, 28]"),
                                    HasSubstr("[B, 3, 32, 32]")));
  }
}

std::string refusal_of(const config::ModelConfig& config) {
  try {
    make_model(config, Weights::kShapesOnly);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ImageModels, RefuseSizesThatCannotBe) {
  EXPECT_THAT(refusal_of(tiny("vit_b_16", 100)),
              AllOf(HasSubstr("model.image_size is 100"), HasSubstr("a multiple of 16")));
  EXPECT_THAT(refusal_of(tiny("vgg16", 16)), HasSubstr("must be from 32 to 8192"));
  EXPECT_THAT(refusal_of(tiny("lenet5", 32)), HasSubstr("must be 28 (model lenet5)"));
  config::ModelConfig no_classes = tiny("resnet18", 32);
  no_classes.num_classes = 0;
  EXPECT_THAT(refusal_of(no_classes), HasSubstr("model.num_classes is 0"));
  config::ModelConfig dropout = tiny("resnet18", 32);
  dropout.dropout = 0.1;
  EXPECT_THAT(refusal_of(dropout), HasSubstr("\"resnet18\" has no dropout"));
  dropout = tiny("vgg16", 32);
  dropout.dropout = 1.0;
  EXPECT_THAT(refusal_of(dropout), HasSubstr("model.dropout is 1"));
}

}  // namespace
}  // namespace assay::models
