// Names of models and data sets, what goes with what, and the sizes of the GPT family. Torch-free.
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

bool is_token_dataset(std::string_view name);  // text, synthetic
bool is_image_dataset(std::string_view name);  // digits, fashion_mnist, mnist, synthetic

// data.name, or the data set that the model trains on when none is named.
std::string effective_dataset(const RunConfig& config);

// Every setting that may be left out and has one meaning then, filled in; so that "left out" and
// "given as it is anyway" compare equal.
RunConfig with_effective_values(const RunConfig& config);

}  // namespace assay::config
