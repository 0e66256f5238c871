// Losses as sums over valid targets, in float32 or better; the caller divides once by the global
// count of the optimizer step.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace assay::models {

inline constexpr int64_t kIgnoredTarget = -100;  // as in PyTorch: not counted

// Sum of cross entropy over targets that are not kIgnoredTarget. logits [N, C] in any float type,
// targets [N] int64. Label smoothing as torch::nn::CrossEntropyLoss (Szegedy et al. 2016, sec. 7).
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& targets,
                             double label_smoothing);

// Number of targets whose largest logit is at the target; int64 scalar tensor.
at::Tensor correct_count(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace assay::models
