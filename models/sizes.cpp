#include "models/sizes.h"

#include <string>

#include "base/error.h"
#include "base/text.h"

namespace assay::models {
namespace {

// Larger than any published GPT's vocabulary, width or context; keeps every product of two sizes
// far from the range of int64_t.
constexpr int64_t kLargestSize = 1'000'000;

}  // namespace

void check_dropout(std::string_view model, double dropout) {
  if (dropout >= 0.0 && dropout < 1.0) return;  // false for NaN too
  throw ConfigError(cat("model.dropout is ", dropout, ", must be >= 0 and < 1 (model ", model,
                        "). Fix: set it, e.g. model.dropout=0.1, or 0 to switch it off"));
}

void check_size(std::string_view model, std::string_view key, int64_t value) {
  if (value >= 1 && value <= kLargestSize) return;
  throw ConfigError(cat(key, " is ", value, ", must be from 1 to ", kLargestSize, " (model ", model,
                        "). Fix: leave it out to take the model's own"));
}

at::Device device_of(Weights weights) {
  return weights == Weights::kShapesOnly ? at::kMeta : at::kCPU;
}

ImageSizes checked_image_sizes(const config::ModelConfig& config) {
  const std::string problem = config::image_size_problem(config);
  if (!problem.empty()) throw ConfigError(problem);
  const ImageSizes sizes = config::image_sizes(config);
  check_size(config.name, "model.num_classes", sizes.num_classes);
  check_dropout(config.name, sizes.dropout);
  return sizes;
}

ModelShape image_model_shape(const config::ModelConfig& config) {
  const ImageSizes sizes = checked_image_sizes(config);
  return {.task = Task::kClassification,
          .num_classes = sizes.num_classes,
          .image_shape = {sizes.channels, sizes.image_size, sizes.image_size},
          .context_length = 0};
}

void check_images(std::string_view model, const at::Tensor& images,
                  c10::ArrayRef<int64_t> image_shape) {
  if (images.dim() == 4 && images.sizes().slice(1) == image_shape) return;
  throw InternalError(cat(model, " got images of shape ", shape_text(images.sizes()),
                          ", expected [B, ", image_shape[0], ", ", image_shape[1], ", ",
                          image_shape[2], "]. Fix: use a data set of that shape, or convert it ",
                          "before the model"));
}

std::string shape_text(c10::ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

}  // namespace assay::models
