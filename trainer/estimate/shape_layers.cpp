// Rules of the layers whose operators have no meta kernel in C++: result shapes as the CUDA kernels
// make them, their work, and the scratch memory they take.
#include <algorithm>
#include <array>
#include <tuple>

#include <ATen/AccumulateType.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/ConvUtils.h>
#include <torch/library.h>
#include <torch/torch.h>

#include "trainer/estimate/shape_kernels.h"

namespace assay::estimate::shape_kernels {
namespace {

using Optional = const std::optional<at::Tensor>&;
using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

at::Tensor like(const at::Tensor& tensor) {
  return at::empty(tensor.sizes(), tensor.options(), tensor.suggest_memory_format());
}

at::Tensor like_optional(Optional tensor) { return tensor ? like(*tensor) : at::Tensor(); }

// cuDNN's kernels for half precision read and write channels-last; for tensors in the other order
// it keeps turned copies of input and output in its workspace.
int64_t turned_copies_bytes(const at::Tensor& input, const at::Tensor& output) {
  const bool is_half = arithmetic_of(input.scalar_type()) == Arithmetic::kHalf;
  const bool is_turned = input.suggest_memory_format() == c10::MemoryFormat::ChannelsLast;
  if (!device_config().is_gpu || !is_half || is_turned) return 0;
  return static_cast<int64_t>(bytes_of(input) + bytes_of(output));
}

// In float32 the fastest kernel for the weights' gradient of a 3x3 convolution multiplies in the
// transformed space of Winograd's F(3x3, 4x4) (Lavin & Gray 2016): for each 4x4 tile of the output
// 36 numbers a channel of input and output, and 36 a weight. What cuDNN 9.19 asked for on an H200,
// to the MiB, for images of 7 to 224 pixels; not with fewer than 32 channels.
int64_t weight_gradient_bytes(const at::Tensor& input, const at::Tensor& weight,
                              const at::Tensor& grad, at::IntArrayRef stride) {
  constexpr int64_t kFewestChannels = 32;
  constexpr int64_t kTile = 4;
  constexpr int64_t kPoints = 36;
  const bool is_3x3 = weight.dim() == 4 && weight.size(2) == 3 && weight.size(3) == 3;
  const bool is_dense = std::all_of(stride.begin(), stride.end(), [](int64_t s) { return s == 1; });
  if (!device_config().is_gpu || !is_3x3 || !is_dense || weight.size(1) < kFewestChannels ||
      input.scalar_type() != at::kFloat) {
    return 0;
  }
  const auto tiles = [](int64_t pixels) { return (pixels + kTile - 1) / kTile; };
  const int64_t transformed =
      tiles(grad.size(2)) * tiles(grad.size(3)) * grad.size(0) * (input.size(1) + grad.size(1));
  return 4 * kPoints * (transformed + weight.size(0) * weight.size(1));
}

double convolution_flops(const at::Tensor& weight, const at::Tensor& output) {
  // weight [out, in / groups, kh, kw]: one multiply-add a weight of a channel and output element
  return 2.0 * static_cast<double>(output.numel()) *
         static_cast<double>(weight.numel() / std::max<int64_t>(weight.size(0), 1));
}

// One number stands for every dimension.
std::vector<int64_t> expanded(at::IntArrayRef values, const at::Tensor& input) {
  const auto count = static_cast<size_t>(input.dim() - 2);
  return values.size() == 1 ? std::vector<int64_t>(count, values[0]) : values.vec();
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, Optional bias,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                       bool is_transposed, at::IntArrayRef output_padding, int64_t groups) {
  TORCH_CHECK(!is_transposed, "estimate has no rule for transposed convolutions ", output_padding);
  (void)groups;  // in the weight's shape
  const auto sizes =
      at::native::conv_output_size(input.sizes(), weight.sizes(), expanded(padding, input),
                                   expanded(stride, input), expanded(dilation, input));
  const bool is_last = input.suggest_memory_format() == c10::MemoryFormat::ChannelsLast ||
                       weight.suggest_memory_format() == c10::MemoryFormat::ChannelsLast;
  const at::Tensor output =
      at::empty(sizes, input.options(),
                is_last ? c10::MemoryFormat::ChannelsLast : c10::MemoryFormat::Contiguous);
  recorder().use_scratch(turned_copies_bytes(input, output));
  add_work("convolution", convolution_flops(weight, output), {input, weight, output});
  if (bias && bias->defined()) add_work("bias", 0.0, {output, output, *bias});
  return output;
}

Triple convolution_backward(const at::Tensor& grad, const at::Tensor& input,
                            const at::Tensor& weight, at::OptionalIntArrayRef bias_sizes,
                            at::IntArrayRef stride, at::IntArrayRef, at::IntArrayRef, bool,
                            at::IntArrayRef, int64_t, std::array<bool, 3> wanted) {
  const double flops = convolution_flops(weight, grad);
  at::Tensor grad_input, grad_weight, grad_bias;
  if (wanted[0]) {
    grad_input = like(input);
    recorder().use_scratch(turned_copies_bytes(input, grad));
    add_work("convolution_backward", flops, {grad, weight, grad_input});
  }
  if (wanted[1]) {
    grad_weight = like(weight);
    recorder().use_scratch(turned_copies_bytes(input, grad) +
                           weight_gradient_bytes(input, weight, grad, stride));
    add_work("convolution_backward", flops, {grad, input, grad_weight});
  }
  if (wanted[2]) {
    grad_bias =
        at::empty(bias_sizes ? *bias_sizes : at::IntArrayRef({weight.size(0)}), grad.options());
    add_work("sum", 0.0, {grad, grad_bias});
  }
  return {grad_input, grad_weight, grad_bias};
}

// Rows that a layer norm looks at, and one value a row.
at::Tensor row_values(const at::Tensor& input, at::IntArrayRef normalized_shape) {
  std::vector<int64_t> sizes(static_cast<size_t>(input.dim()), 1);
  const size_t rows = sizes.size() - normalized_shape.size();
  for (size_t i = 0; i < rows; ++i) sizes[i] = input.size(static_cast<int64_t>(i));
  return at::empty(sizes, input.options().dtype(at::toAccumulateType(input.scalar_type(), true)));
}

Triple layer_norm(const at::Tensor& input, at::IntArrayRef normalized_shape, Optional weight,
                  Optional bias, double) {
  const at::Tensor output = at::empty(input.sizes(), input.options());
  const at::Tensor mean = row_values(input, normalized_shape);
  const at::Tensor deviation = row_values(input, normalized_shape);
  add_work("native_layer_norm", 0.0,
           {input, output, weight.value_or(at::Tensor()), bias.value_or(at::Tensor())});
  return {output, mean, deviation};
}

Triple layer_norm_backward(const at::Tensor& grad, const at::Tensor& input, at::IntArrayRef,
                           const at::Tensor&, const at::Tensor&, Optional weight, Optional bias,
                           std::array<bool, 3> wanted) {
  const at::Tensor grad_input =
      wanted[0] ? at::empty(input.sizes(), input.options()) : at::Tensor();
  const at::Tensor grad_weight = wanted[1] ? like_optional(weight) : at::Tensor();
  const at::Tensor grad_bias = wanted[2] ? like_optional(bias) : at::Tensor();
  // Two kernels read both inputs: one for the rows, one for weight and bias.
  add_work("native_layer_norm_backward", 0.0, {grad, input, grad_input, grad, input});
  return {grad_input, grad_weight, grad_bias};
}

Triple batch_norm(const at::Tensor& input, Optional weight, Optional bias, Optional, Optional,
                  bool is_training, double, double) {
  (void)weight;
  (void)bias;
  const at::Tensor output = like(input);
  const auto options =
      input.options().dtype(at::toAccumulateType(input.scalar_type(), /*is_cuda=*/true));
  const int64_t channels = is_training ? input.size(1) : 0;
  // In training one pass takes the statistics, another normalises.
  if (is_training) add_work("batch_norm_statistics", 0.0, {input});
  add_work("native_batch_norm", 0.0, {input, output});
  return {output, at::empty({channels}, options), at::empty({channels}, options)};
}

Triple batch_norm_backward(const at::Tensor& grad, const at::Tensor& input, Optional weight,
                           Optional, Optional, Optional, Optional, bool, double,
                           std::array<bool, 3> wanted) {
  const at::Tensor grad_input = wanted[0] ? like(input) : at::Tensor();
  const auto per_channel = [&](bool is_wanted) {
    if (!is_wanted) return at::Tensor();
    return weight && weight->defined() ? like(*weight)
                                       : at::empty({input.size(1)}, input.options());
  };
  const at::Tensor grad_weight = per_channel(wanted[1]);
  const at::Tensor grad_bias = per_channel(wanted[2]);
  add_work("batch_norm_sums", 0.0, {grad, input});
  add_work("native_batch_norm_backward", 0.0, {grad, input, grad_input});
  return {grad_input, grad_weight, grad_bias};
}

std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& input, double, std::optional<bool>) {
  const at::Tensor output = at::empty_like(input);
  // The CPU has no fused kernel and keeps the factors instead of a mask.
  const auto type = device_config().is_gpu ? at::kBool : input.scalar_type();
  const at::Tensor mask = at::empty(input.sizes(), input.options().dtype(type));
  add_work("native_dropout", 0.0, {input, output, mask});
  return {output, mask};
}

at::Tensor dropout_backward(const at::Tensor& grad, const at::Tensor& mask, double) {
  const at::Tensor result = at::empty_like(grad);
  add_work("native_dropout_backward", 0.0, {grad, mask, result});
  return result;
}

at::Tensor index_select(const at::Tensor& table, int64_t dim, const at::Tensor& index) {
  std::vector<int64_t> sizes = table.sizes().vec();
  sizes[static_cast<size_t>(at::maybe_wrap_dim(dim, table.dim()))] = index.numel();
  const at::Tensor rows = at::empty(sizes, table.options());
  add_work("index_select", 0.0, {rows, rows, index});
  return rows;
}

at::Tensor embedding_backward(const at::Tensor& grad, const at::Tensor& indices, int64_t num_rows,
                              int64_t, bool) {
  const at::Tensor table = at::empty({num_rows, grad.size(-1)}, grad.options());
  // The CUDA kernel sorts the indices and their places before it sums (Embedding.cu).
  recorder().use_scratch(4 * static_cast<int64_t>(bytes_of(indices)));
  add_work("embedding_dense_backward", 0.0, {grad, indices, table});
  return table;
}

at::Tensor adaptive_pool(const at::Tensor& input, at::IntArrayRef output_size) {
  std::vector<int64_t> sizes = input.sizes().vec();
  std::copy(output_size.begin(), output_size.end(), sizes.end() - 2);
  const at::Tensor output = at::empty(sizes, input.options(), input.suggest_memory_format());
  add_work("_adaptive_avg_pool2d", 0.0, {input, output});
  return output;
}

at::Tensor adaptive_pool_backward(const at::Tensor& grad, const at::Tensor& input) {
  const at::Tensor result = like(input);
  add_work("_adaptive_avg_pool2d_backward", 0.0, {grad, result});
  return result;
}

at::Tensor where(const at::Tensor& condition, const at::Tensor& yes, const at::Tensor& no) {
  const auto sizes = at::infer_size(condition.sizes(), at::infer_size(yes.sizes(), no.sizes()));
  const at::Tensor result = at::empty(sizes, condition.options().dtype(at::result_type(yes, no)));
  add_work("where", 0.0, {condition, yes, no, result});
  return result;
}

}  // namespace

void register_layers(torch::Library& library) {
  library.impl("convolution", &convolution);
  library.impl("convolution_backward", &convolution_backward);
  library.impl("native_layer_norm", &layer_norm);
  library.impl("native_layer_norm_backward", &layer_norm_backward);
  library.impl("native_batch_norm", &batch_norm);
  library.impl("native_batch_norm_backward", &batch_norm_backward);
  library.impl("native_dropout", &dropout);
  library.impl("native_dropout_backward", &dropout_backward);
  library.impl("index_select", &index_select);
  library.impl("embedding_dense_backward", &embedding_backward);
  library.impl("_adaptive_avg_pool2d", &adaptive_pool);
  library.impl("_adaptive_avg_pool2d_backward", &adaptive_pool_backward);
  library.impl("where.self", &where);
}

}  // namespace assay::estimate::shape_kernels
