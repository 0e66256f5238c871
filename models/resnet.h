// Residual networks (He et al. 2016) for ImageNet and for CIFAR-10, with torchvision's names.
#pragma once

#include "models/model.h"

namespace assay::models {

// Throws ConfigError for sizes that cannot be.
Model make_resnet(const config::ModelConfig& config, Weights weights);

}  // namespace assay::models
