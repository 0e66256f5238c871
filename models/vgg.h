// VGG-16, plain and with batch norm (Simonyan & Zisserman 2015), with torchvision's names.
#pragma once

#include "models/model.h"

namespace assay::models {

// Throws ConfigError for sizes that cannot be.
Model make_vgg(const config::ModelConfig& config, Weights weights);

}  // namespace assay::models
