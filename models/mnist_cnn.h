// The convolutional network of PyTorch's MNIST example.
#pragma once

#include "models/model.h"

namespace assay::models {

// Throws ConfigError if model.dropout is not in [0, 1).
Model make_mnist_cnn(const config::ModelConfig& config, Weights weights);

}  // namespace assay::models
