// Batch norm whose statistics are those of all ranks' images together, so that a small share of a
// batch on each rank trains as one big batch does (Peng et al. 2018, "MegDet", sec. 3.3).
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

namespace assay::models {

// Sums over the ranks of a job.
struct RankSums {
  int64_t rank = 0;
  int64_t size = 1;
  // In place; the result may be used on the tensor's current stream. Every rank calls it as often,
  // with the same shapes. Comes from autograd's thread too.
  std::function<void(const at::Tensor&)> all_reduce;
};

struct BatchNormTensors {
  at::Tensor weight;        // [C]
  at::Tensor bias;          // [C]
  at::Tensor running_mean;  // [C], moved
  at::Tensor running_var;   // [C], moved; by the unbiased variance
};
struct BatchNormNumbers {
  double momentum = 0;  // of the running values
  double epsilon = 0;
};

// [N, C, H, W] -> the same, in training, over all ranks' N; differentiable. The loss must be one
// sum over all ranks; the gradients of weight and bias are this rank's share of it. One sum over
// ranks in forward and one in backward. Statistics are kept in float32, in float64 for float64.
at::Tensor sync_batch_norm(const at::Tensor& x, const BatchNormTensors& tensors,
                           const BatchNormNumbers& numbers, const RankSums& sums);

}  // namespace assay::models
