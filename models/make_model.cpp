// The only place that knows which model names exist and which family makes each.
#include <optional>
#include <string>
#include <string_view>

#include <torch/nn/module.h>

#include "base/error.h"
#include "base/text.h"
#include "models/gpt2.h"
#include "models/lenet5.h"
#include "models/mnist_cnn.h"
#include "models/mobilenet_v2.h"
#include "models/model.h"
#include "models/resnet.h"
#include "models/sizes.h"
#include "models/vgg.h"
#include "models/vit.h"
#include "trainer/config/config_io.h"

namespace assay::models {
namespace {

using MakeImageModel = Model (*)(const config::ModelConfig& config, Weights weights);

struct ImageModel {
  std::string_view name;
  MakeImageModel make;
};

constexpr ImageModel kImageModels[] = {
    {"mnist_cnn", make_mnist_cnn},
    {"lenet5", make_lenet5},
    {"vgg16", make_vgg},
    {"vgg16_bn", make_vgg},
    {"resnet18", make_resnet},
    {"resnet34", make_resnet},
    {"resnet50", make_resnet},
    {"resnet20_cifar", make_resnet},
    {"resnet56_cifar", make_resnet},
    {"mobilenet_v2", make_mobilenet_v2},
    {"vit_b_16", make_vit},
    {"vit_s_16", make_vit},
    {"vit_ti_16", make_vit},
};

// nullptr: a GPT. Throws ConfigError for a name that is no model's.
MakeImageModel image_family_of(const std::string& name) {
  for (const ImageModel& model : kImageModels) {
    if (model.name == name) return model.make;
  }
  if (config::is_gpt_model(name)) return nullptr;
  const std::optional<std::string> nearest = nearest_spelling(name, config::model_names());
  throw ConfigError(cat("model.name is ", assay::quoted(name), ", expected one of ",
                        join(config::model_names(), ", "), ". Fix: set --model ",
                        nearest ? *nearest : config::model_names()[0]));
}

}  // namespace

ModelShape model_shape(const config::ModelConfig& config) {
  return image_family_of(config.name) ? image_model_shape(config) : gpt2_shape(config);
}

Model make_model(const config::ModelConfig& config, Weights weights) {
  const MakeImageModel make = image_family_of(config.name);
  return make ? make(config, weights) : make_gpt2(config, weights);
}

int64_t parameter_count(const Model& model) {
  int64_t count = 0;
  for (const at::Tensor& parameter : model.module->parameters()) count += parameter.numel();
  return count;
}

}  // namespace assay::models
