// The GPT-2 family (Radford et al. 2019), with the parameter names and layouts of Hugging Face's
// GPT2LMHeadModel.
#pragma once

#include "models/model.h"

namespace assay::models {

// Both throw ConfigError for sizes that cannot be.
ModelShape gpt2_shape(const config::ModelConfig& config);
Model make_gpt2(const config::ModelConfig& config, Weights weights);

}  // namespace assay::models
