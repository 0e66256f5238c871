// Weights to start from that a file holds, instead of drawn ones.
#pragma once

#include <string>

#include "models/model.h"

namespace assay::step {

// Puts weights and buffers of a safetensors file, under the names of torchvision or Hugging Face,
// into the model. Floating point types are turned into the model's. Every tensor must be there with
// its shape, and nothing else: throws CheckpointError naming the file and the first that is not.
void load_initial_weights(const models::Model& model, const std::string& path);

}  // namespace assay::step
