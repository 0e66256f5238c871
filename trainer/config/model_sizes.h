// Names of models and data sets, what goes with what, and the sizes of the models. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/config/config_io.h"

namespace assay::config {

struct GptSizes {
  int64_t n_layer = 0;
  int64_t n_head = 0;
  int64_t n_embd = 0;
  int64_t n_positions = 0;
  int64_t vocab_size = 0;
  double dropout = 0;
};

// The named model's sizes with the overrides of `model`. Throws InternalError if it is no GPT.
GptSizes gpt_sizes(const ModelConfig& model);

struct ImageSizes {
  int64_t channels = 0;
  int64_t image_size = 0;  // height and width
  int64_t num_classes = 0;
  double dropout = 0;  // of models with one rate
};

// The named model's sizes with the overrides of `model`. Throws InternalError if it is no image
// model.
ImageSizes image_sizes(const ModelConfig& model);

// Why the image model cannot have these sizes: "what, got, expected, fix"; empty if it can.
std::string image_size_problem(const ModelConfig& model);

bool is_token_dataset(std::string_view name);
bool is_image_dataset(std::string_view name);  // synthetic and packed may be either
bool has_image_files(std::string_view name);   // packed may have

// data.name, or the data set that the model trains on when none is named.
std::string effective_dataset(const RunConfig& config);

// Every setting that may be left out and has one meaning then, filled in; so that "left out" and
// "given as it is anyway" compare equal.
RunConfig with_effective_values(const RunConfig& config);

}  // namespace assay::config
