// LeNet-5 (LeCun et al. 1998).
#pragma once

#include "models/model.h"

namespace assay::models {

// Throws ConfigError for sizes that cannot be.
Model make_lenet5(const config::ModelConfig& config, Weights weights);

}  // namespace assay::models
