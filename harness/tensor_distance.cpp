#include "harness/tensor_distance.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "checkpoints/safetensors.h"

namespace assay::harness {
namespace {

using checkpoints::SafetensorsFile;
using checkpoints::TensorView;

template <class Number>
double relative_distance(const TensorView& left, const TensorView& right) {
  double difference = 0;
  double norm = 0;
  for (uint64_t offset = 0; offset + sizeof(Number) <= right.byte_count; offset += sizeof(Number)) {
    Number a;
    Number b;
    std::memcpy(&a, static_cast<const char*>(left.bytes) + offset, sizeof a);
    std::memcpy(&b, static_cast<const char*>(right.bytes) + offset, sizeof b);
    const double gap = static_cast<double>(a) - static_cast<double>(b);
    difference += gap * gap;
    norm += static_cast<double>(b) * static_cast<double>(b);
  }
  if (difference == 0) return 0;
  if (std::isnan(difference) || norm == 0) return std::numeric_limits<double>::infinity();
  return std::sqrt(difference / norm);
}

double tensor_distance(const TensorView& left, const TensorView& right) {
  if (right.dtype == "F32") return relative_distance<float>(left, right);
  if (right.dtype == "F64") return relative_distance<double>(left, right);
  const bool is_equal = std::memcmp(left.bytes, right.bytes, right.byte_count) == 0;
  return is_equal ? 0 : std::numeric_limits<double>::infinity();
}

}  // namespace

CheckpointDistance model_distance(const std::string& left, const std::string& right) {
  const SafetensorsFile left_file(join_path(left, checkpoints::kModelFile));
  const SafetensorsFile right_file(join_path(right, checkpoints::kModelFile));
  if (left_file.tensors().size() != right_file.tensors().size()) {
    throw CheckpointError(cat(left_file.path(), " has ", left_file.tensors().size(), " tensors, ",
                              right_file.path(), " has ", right_file.tensors().size()));
  }
  CheckpointDistance result;
  for (const TensorView& b : right_file.tensors()) {
    const TensorView* a = left_file.find(b.name);
    if (a == nullptr || a->dtype != b.dtype || a->shape != b.shape) {
      throw CheckpointError(cat(left_file.path(), ": tensor ", assay::quoted(b.name),
                                a == nullptr ? " is missing" : " has another dtype or shape than ",
                                a == nullptr ? "" : right_file.path()));
    }
    result.tensors.push_back({b.name, tensor_distance(*a, b)});
    if (result.tensors.back().relative > result.greatest) {
      result.greatest = result.tensors.back().relative;
      result.greatest_name = b.name;
    }
  }
  return result;
}

}  // namespace assay::harness
