// A model as the trainer sees it: a module with the published parameter names, and a forward
// function. Families live in one file each; make_model is the only switch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/config/run_config.h"

namespace torch::nn {
class Module;
}

namespace assay::models {

enum class Task { kClassification, kLanguageModel };

struct Model {
  std::string name;
  Task task = Task::kClassification;
  std::shared_ptr<torch::nn::Module> module;
  // Classification: normalised images [B, C, H, W] -> logits [B, classes].
  // Language model: token ids [B, T] int64 -> logits [B, T, vocab].
  std::function<at::Tensor(const at::Tensor&)> forward;
  int64_t num_classes = 0;           // classes or vocabulary
  std::vector<int64_t> image_shape;  // {C, H, W}; empty for a language model
  int64_t context_length = 0;        // tokens; 0 for images
};

// What a data set must look like for a model, known without building it (no weights allocated).
struct ModelShape {
  Task task = Task::kClassification;
  int64_t num_classes = 0;
  std::vector<int64_t> image_shape;
  int64_t context_length = 0;
};
ModelShape model_shape(const config::ModelConfig& config);

enum class Weights {
  kInitialised,  // on the CPU, drawn from the default generator (seed it before)
  kShapesOnly,   // names, shapes and types, on the meta device: no memory, nothing drawn
};

// Builds a model in float32. Throws ConfigError for sizes that cannot be (n_embd not divisible by
// n_head, ...).
Model make_model(const config::ModelConfig& config, Weights weights = Weights::kInitialised);

// Elements of all parameters; a tied one counts once.
int64_t parameter_count(const Model& model);

}  // namespace assay::models
