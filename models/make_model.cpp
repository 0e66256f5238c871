// The only place that knows which model names exist and which family makes each.
#include <optional>
#include <string>

#include <torch/nn/module.h>

#include "base/error.h"
#include "base/text.h"
#include "models/gpt2.h"
#include "models/mnist_cnn.h"
#include "models/model.h"
#include "trainer/config/config_io.h"

namespace assay::models {
namespace {

enum class Family { kMnistCnn, kGpt2 };

Family family_of(const std::string& name) {
  if (name == "mnist_cnn") return Family::kMnistCnn;
  if (config::is_gpt_model(name)) return Family::kGpt2;
  const std::optional<std::string> nearest = nearest_spelling(name, config::model_names());
  throw ConfigError(cat("model.name is ", assay::quoted(name), ", expected one of ",
                        join(config::model_names(), ", "), ". Fix: set --model ",
                        nearest ? *nearest : config::model_names()[0]));
}

}  // namespace

ModelShape model_shape(const config::ModelConfig& config) {
  switch (family_of(config.name)) {
    case Family::kMnistCnn:
      return mnist_cnn_shape();
    case Family::kGpt2:
      return gpt2_shape(config);
  }
  throw InternalError("model_shape: a family is missing from the switch");
}

Model make_model(const config::ModelConfig& config, Weights weights) {
  switch (family_of(config.name)) {
    case Family::kMnistCnn:
      return make_mnist_cnn(config, weights);
    case Family::kGpt2:
      return make_gpt2(config, weights);
  }
  throw InternalError("make_model: a family is missing from the switch");
}

int64_t parameter_count(const Model& model) {
  int64_t count = 0;
  for (const at::Tensor& parameter : model.module->parameters()) count += parameter.numel();
  return count;
}

}  // namespace assay::models
