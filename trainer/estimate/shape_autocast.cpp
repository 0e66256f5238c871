// Mixed precision on the shape device: LibTorch's own lists of operators, as its CUDA autocast uses
// them.
#include <ATen/autocast_mode.h>
#include <torch/library.h>
#include <torch/torch.h>

#include "trainer/estimate/shape_kernels.h"

namespace assay::estimate::shape_kernels {

void register_autocast(torch::Library& library) {
  // LibTorch's macros register into a library named `m`.
  torch::Library& m = library;
  using at::DimnameList;
  using at::IntArrayRef;
  using at::Scalar;
  using at::ScalarType;
  using at::Tensor;
#define ASSAY_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define ASSAY_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define ASSAY_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define ASSAY_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(ASSAY_LOWER)
  AT_FORALL_FP32(ASSAY_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(ASSAY_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(ASSAY_PROMOTE)
#undef ASSAY_PROMOTE
#undef ASSAY_FP32_SET_OPT_DTYPE
#undef ASSAY_FP32
#undef ASSAY_LOWER
}

}  // namespace assay::estimate::shape_kernels
