// Elements of tensors as numbers and text. Internal to checkpoints/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/safetensors.h"

namespace assay::checkpoints {

// The element at a flat index: exact decimal text, with its bits in hex where those may matter
// (NaN, zero).
std::string element_text(const TensorView& tensor, uint64_t index);

// "conv1.weight[3, 0, 12]"; a scalar has no brackets.
std::string element_name(const TensorView& tensor, uint64_t index);

// The elements of a floating point tensor as float32: exact for F16 and BF16.
std::vector<unsigned char> as_float32(const TensorView& tensor);

// Flat index of the first element whose bits differ; nothing if all are equal. Same dtype and
// shape.
std::optional<uint64_t> first_difference(const TensorView& left, const TensorView& right);

// ||left-right|| / ||right|| in double, over all elements; inf where that is not a number (the
// right side is all zero, or something is not finite). Same dtype and shape.
double relative_difference(const TensorView& left, const TensorView& right);

}  // namespace assay::checkpoints
