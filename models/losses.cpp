#include "models/losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>

#include "base/error.h"
#include "base/text.h"
#include "models/sizes.h"

namespace assay::models {
namespace {

// N targets, K classes

void check_pair(const at::Tensor& logits, const at::Tensor& targets) {
  if (logits.dim() == 2 && targets.dim() == 1 && logits.size(0) == targets.size(0) &&
      targets.scalar_type() == at::kLong && logits.is_floating_point()) {
    return;
  }
  throw InternalError(cat("the loss got logits ", shape_text(logits.sizes()), " of type ",
                          c10::toString(logits.scalar_type()), " and targets ",
                          shape_text(targets.sizes()), " of type ",
                          c10::toString(targets.scalar_type()),
                          ", expected [N, K] of a float type and [N] of type Long"));
}

// Half and bfloat16 become float32 before the first sum: 8 or 11 bits of mantissa lose a loss over
// thousands of targets, and float16 ends at 65504.
at::Tensor to_float_or_better(const at::Tensor& logits) {
  const bool is_double = logits.scalar_type() == at::kDouble;
  return logits.to(is_double ? at::kDouble : at::kFloat);
}

}  // namespace

at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& targets,
                             double label_smoothing) {
  check_pair(logits, targets);
  if (!(label_smoothing >= 0.0 && label_smoothing <= 1.0)) {
    throw InternalError(cat("label smoothing is ", label_smoothing, ", expected from 0 to 1"));
  }
  const at::Tensor log_p = at::log_softmax(to_float_or_better(logits), 1);  // [N, K]
  const at::Tensor nll = at::nll_loss(log_p, targets, /*weight=*/{}, at::Reduction::Sum,
                                      kIgnoredTarget);  // []
  if (label_smoothing == 0.0) return nll;
  // (1 - e) * H(one-hot, p) + e * H(uniform, p): Szegedy et al. 2016, sec. 7
  const at::Tensor ignored = targets.eq(kIgnoredTarget);                           // [N]
  const at::Tensor uniform = log_p.mean(1).neg().masked_fill(ignored, 0.0).sum();  // []
  return nll * (1.0 - label_smoothing) + uniform * label_smoothing;                // []
}

at::Tensor correct_count(const at::Tensor& logits, const at::Tensor& targets) {
  check_pair(logits, targets);
  // An ignored target is negative and so equals no class.
  return logits.argmax(1).eq(targets).sum();  // []
}

}  // namespace assay::models
