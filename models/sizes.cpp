#include "models/sizes.h"

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

std::string shape_text(c10::ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

}  // namespace assay::models
