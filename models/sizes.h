// Sizes of models: their limits, checked when a model is made, and their text in messages; and what
// all image models share around their network.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/ArrayRef.h>

#include "models/model.h"
#include "trainer/config/model_sizes.h"

namespace assay::models {

// Throws ConfigError unless 0 <= dropout < 1.
void check_dropout(std::string_view model, double dropout);

// Throws ConfigError unless 1 <= value <= 1,000,000. `key` is the field's dotted name.
void check_size(std::string_view model, std::string_view key, int64_t value);

// "[64, 1, 28, 28]".
std::string shape_text(c10::ArrayRef<int64_t> shape);

// Where a model is made.
at::Device device_of(Weights weights);

using config::ImageSizes;

// The sizes of an image model. Throws ConfigError if it cannot have them.
ImageSizes checked_image_sizes(const config::ModelConfig& config);
ModelShape image_model_shape(const config::ModelConfig& config);

// Throws InternalError unless the images are [B, C, H, W] with the shape {C, H, W}.
void check_images(std::string_view model, const at::Tensor& images,
                  c10::ArrayRef<int64_t> image_shape);

// The image model around a network with `forward(images) -> logits`.
template <class Network>
Model image_model(const config::ModelConfig& config, std::shared_ptr<Network> network) {
  ModelShape shape = image_model_shape(config);
  auto forward = [network, name = config.name,
                  image_shape = shape.image_shape](const at::Tensor& images) {
    check_images(name, images, image_shape);
    return network->forward(images);
  };
  return {.name = config.name,
          .task = shape.task,
          .module = std::move(network),
          .forward = std::move(forward),
          .num_classes = shape.num_classes,
          .image_shape = std::move(shape.image_shape),
          .context_length = 0};
}

}  // namespace assay::models
