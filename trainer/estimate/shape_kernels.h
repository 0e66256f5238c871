// Parts of the shape device; only for shape_*.cpp.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/estimate/shape_device.h"
#include "trainer/estimate/trace_recorder.h"

namespace torch {
class Library;
}

namespace assay::estimate::shape_kernels {

// The recorder in use. Throws InternalError without one.
TraceRecorder& recorder();
const ShapeDeviceConfig& device_config();

at::Tensor empty_like_shape(at::IntArrayRef sizes, at::IntArrayRef strides, c10::ScalarType type);
Arithmetic arithmetic_of(c10::ScalarType type);
double bytes_of(const at::Tensor& tensor);  // 0 if undefined

// Work of one operation: inputs and outputs moved once.
void add_work(std::string_view name, double flops, at::TensorList tensors);
// Counts the matrix library's workspace of this thread, once.
void use_matrix_library();

void register_storage(torch::Library& library);    // making, viewing and resizing tensors
void register_layers(torch::Library& library);     // convolution, norms, embedding, dropout, ...
void register_attention(torch::Library& library);  // the fused kernels
void register_attention_choice(torch::Library& autograd_library);
void register_autocast(torch::Library& library);
// Everything else: shapes from the meta kernel.
void register_fallback(torch::Library& all_operators);

}  // namespace assay::estimate::shape_kernels
