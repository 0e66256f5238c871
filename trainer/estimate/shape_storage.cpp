// The shape device's tensors: making, viewing and resizing them.
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <torch/library.h>
#include <torch/torch.h>

#include "base/error.h"
#include "base/text.h"
#include "trainer/estimate/shape_kernels.h"

namespace assay::estimate::shape_kernels {
namespace {

c10::ScalarType type_or_default(const std::optional<c10::ScalarType>& type) {
  return type.value_or(c10::get_default_dtype_as_scalartype());
}

std::vector<int64_t> contiguous_strides(at::IntArrayRef sizes,
                                        const std::optional<c10::MemoryFormat>& format) {
  if (format == c10::MemoryFormat::ChannelsLast) return c10::get_channels_last_strides_2d(sizes);
  if (format == c10::MemoryFormat::ChannelsLast3d) return c10::get_channels_last_strides_3d(sizes);
  const auto strides = c10::contiguous_strides(sizes);
  return {strides.begin(), strides.end()};
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<c10::ScalarType> type,
                 std::optional<c10::Layout>, std::optional<c10::Device>, std::optional<bool>,
                 std::optional<c10::MemoryFormat> format) {
  return empty_like_shape(sizes, contiguous_strides(sizes, format), type_or_default(type));
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         std::optional<c10::ScalarType> type, std::optional<c10::Layout>,
                         std::optional<c10::Device>, std::optional<bool>) {
  return empty_like_shape(sizes, strides, type_or_default(type));
}

at::Tensor view_of(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides,
                   int64_t offset) {
  auto view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(tensor.storage()), tensor.key_set(), tensor.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return view;
}

at::Tensor as_strided(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides,
                      std::optional<int64_t> offset) {
  return view_of(tensor, sizes, strides, offset.value_or(tensor.storage_offset()));
}

at::Tensor reshape_alias(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides) {
  return view_of(tensor, sizes, strides, tensor.storage_offset());
}

at::Tensor view(const at::Tensor& tensor, at::IntArrayRef wanted) {
  const auto sizes = at::infer_size_dv(wanted, tensor.numel());
  const auto strides = at::detail::computeStride(tensor.sizes(), tensor.strides(), sizes);
  TORCH_CHECK(strides.has_value(), "a view of ", tensor.sizes(), " with strides ", tensor.strides(),
              " cannot have the shape ", wanted);
  return view_of(tensor, sizes, *strides, tensor.storage_offset());
}

at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool) {
  add_work("copy_", 0.0, {self, source});
  return self;
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef sizes,
                         std::optional<c10::MemoryFormat> format) {
  const std::vector<int64_t> strides = contiguous_strides(sizes, format);
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  const size_t needed = at::detail::computeStorageNbytes(
      sizes, strides, self.element_size(), static_cast<size_t>(self.storage_offset()));
  if (needed > self.storage().nbytes()) {
    const at::Tensor larger = empty_like_shape(sizes, strides, self.scalar_type());
    impl->set_storage_keep_dtype(larger.storage());
  }
  impl->set_sizes_and_strides(sizes, strides);
  return self;
}

at::Scalar local_scalar(const at::Tensor&) {
  throw InternalError(
      "the training step reads a number from the device, which only a run has: it cannot be "
      "estimated, and would stall a GPU");
}

}  // namespace

void register_storage(torch::Library& library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("as_strided", &as_strided);
  library.impl("_reshape_alias", &reshape_alias);
  library.impl("view", &view);
  library.impl("copy_", &copy);
  library.impl("resize_", &resize);
  library.impl("_local_scalar_dense", &local_scalar);
}

}  // namespace assay::estimate::shape_kernels
