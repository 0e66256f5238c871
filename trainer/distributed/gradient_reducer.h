// Data-parallel gradients: sums over all ranks, bucket by bucket, while backward still runs
// (Li et al. 2020, "PyTorch Distributed", sec. 3.2), on c10d's reducer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/distributed/world.h"

namespace assay::distributed {

struct ReducerSettings {
  double bucket_mb = 25;       // MiB of gradients a bucket
  double first_bucket_mb = 1;  // the first to be reduced is small, so that reducing starts early
  bool is_bf16 = false;        // reduce in bfloat16: half the bytes, sums rounded to 8 bits
  bool is_static_graph =
      false;  // the same parameters take part in every backward, maybe repeatedly
};

// Main thread only, but for the call-backs, which come from autograd's thread.
class GradientReducer {
 public:
  // The parameters' gradients become views of the buckets. Collective: reduces zeros once, in the
  // order in which backward makes gradients (last parameter first), so that the buckets have their
  // final layout before the first step and a resumed run adds in the order of the first one.
  GradientReducer(World& world, const std::vector<std::string>& names,
                  const std::vector<at::Tensor>& parameters, const ReducerSettings& settings);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Announces that the next backward ends an accumulation: the gradients are then summed over the
  // ranks, not averaged, and backward returns when they are there (on CUDA: in stream order).
  // `on_bucket(index, count)` is called as each bucket's reduction starts.
  void prepare(std::function<void(size_t index, size_t count)> on_bucket);
  // After that backward. Throws LaunchError if it left a parameter without gradient, naming the
  // parameters concerned: the other ranks wait for them.
  void finish();

  struct Bucket {
    int64_t bytes = 0;
    std::vector<std::string> parameters;
  };
  const std::vector<Bucket>& buckets() const;  // in the order of reduction

  struct State;  // of the source file

 private:
  std::unique_ptr<State> state_;
};

// A loss of zero that gives every parameter a gradient of zero, last parameter first: for a rank
// that has no sample left in a step and must still take part in the reduction.
at::Tensor zero_loss(const std::vector<at::Tensor>& parameters);

}  // namespace assay::distributed
