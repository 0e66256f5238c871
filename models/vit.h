// The vision transformers ViT-B/16, S/16 and Ti/16 (Dosovitskiy et al. 2021, Touvron et al. 2021),
// with torchvision's names.
#pragma once

#include "models/model.h"

namespace assay::models {

// Throws ConfigError for sizes that cannot be, e.g. an image that patches do not divide.
Model make_vit(const config::ModelConfig& config, Weights weights);

}  // namespace assay::models
