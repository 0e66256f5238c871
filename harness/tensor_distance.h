// How far two checkpoints' tensors lie apart, norm-wise per tensor: ||a - b|| / ||b||. For runs
// whose sums have another order, where bits cannot be equal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::harness {

struct TensorDistance {
  std::string name;
  double relative = 0;  // ||a - b|| / ||b||; 0 if both are zero, infinity if only b is
};

struct CheckpointDistance {
  std::vector<TensorDistance> tensors;  // in the order of `right`
  double greatest = 0;
  std::string greatest_name;
};

// Compares model.safetensors of two checkpoint folders (F32 and F64; integers must be equal).
// Throws CheckpointError if a file is not whole, or tensors, dtypes or shapes differ.
CheckpointDistance model_distance(const std::string& left, const std::string& right);

}  // namespace assay::harness
