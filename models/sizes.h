// Sizes of models: their limits, checked when a model is made, and their text in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <c10/util/ArrayRef.h>

namespace assay::models {

// Throws ConfigError unless 0 <= dropout < 1.
void check_dropout(std::string_view model, double dropout);

// Throws ConfigError unless 1 <= value <= 1,000,000. `key` is the field's dotted name.
void check_size(std::string_view model, std::string_view key, int64_t value);

// "[64, 1, 28, 28]".
std::string shape_text(c10::ArrayRef<int64_t> shape);

}  // namespace assay::models
