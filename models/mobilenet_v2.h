// MobileNetV2 (Sandler et al. 2018), with torchvision's names.
#pragma once

#include "models/model.h"

namespace assay::models {

// Throws ConfigError for sizes that cannot be.
Model make_mobilenet_v2(const config::ModelConfig& config, Weights weights);

}  // namespace assay::models
