#include "trainer/estimate/shape_device.h"

#include <atomic>
#include <utility>

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>
#include <torch/torch.h>

#include "base/error.h"
#include "base/text.h"
#include "trainer/estimate/shape_kernels.h"

namespace assay::estimate {
namespace {

// The dispatcher calls plain functions, so what they share must be reachable without an object.
struct Shared {
  std::shared_ptr<TraceRecorder> recorder;
  ShapeDeviceConfig config;
  int64_t generation = 0;  // counts recorders, for what happens once in each
};

Shared& shared() {
  static Shared instance;
  return instance;
}

std::atomic<bool> is_in_use{false};

// One device, nothing to wait for.
struct GuardImpl final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1> {
  c10::Device getDevice() const override { return ShapeDevice::device(); }
  c10::Device exchangeDevice(c10::Device) const override { return ShapeDevice::device(); }
  c10::Stream getStream(c10::Device) const noexcept override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return stream(); }

 private:
  static c10::Stream stream() noexcept {
    return c10::Stream(c10::Stream::DEFAULT, ShapeDevice::device());
  }
};

struct Holding {
  std::shared_ptr<TraceRecorder> recorder;
  int64_t allocation = 0;
};

void release_holding(void* context) {
  const std::unique_ptr<Holding> holding(static_cast<Holding*>(context));
  holding->recorder->release(holding->allocation);
}

// Storages without memory behind them.
class ShapeAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto holding = std::make_unique<Holding>();
    holding->recorder = shared().recorder;
    holding->allocation = shape_kernels::recorder().allocate(static_cast<int64_t>(bytes));
    return {nullptr, holding.release(), &release_holding, ShapeDevice::device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_holding; }
  void copy_data(void*, const void*, std::size_t) const override {}
};

ShapeAllocator& allocator() {
  static ShapeAllocator instance;
  return instance;
}

// What LibTorch asks of an accelerator.
struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
};

void register_device_once() {
  static const GuardImpl guard;
  static const c10::impl::DeviceGuardImplRegistrar registrar(c10::DeviceType::PrivateUse1, &guard);
  static Hooks hooks;
  c10::register_privateuse1_backend(
      "shapes");  // comes before CUDA where an accelerator is asked for
  if (!at::isPrivateUse1HooksRegistered()) at::RegisterPrivateUse1HooksInterface(&hooks);
}

torch::Library implementations(c10::DispatchKey key) {
  return {torch::Library::IMPL, "aten", key, __FILE__, __LINE__};
}

}  // namespace

namespace shape_kernels {

TraceRecorder& recorder() {
  if (!shared().recorder) throw InternalError("the shape device is used without a recorder");
  return *shared().recorder;
}

const ShapeDeviceConfig& device_config() { return shared().config; }

at::Tensor empty_like_shape(at::IntArrayRef sizes, at::IntArrayRef strides, c10::ScalarType type) {
  return at::detail::empty_strided_generic(
      sizes, strides, &allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type);
}

Arithmetic arithmetic_of(c10::ScalarType type) {
  if (type == at::kDouble) return Arithmetic::kDouble;
  return c10::isReducedFloatingType(type) ? Arithmetic::kHalf : Arithmetic::kSingle;
}

double bytes_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<double>(tensor.numel() * tensor.element_size()) : 0.0;
}

void add_work(std::string_view name, double flops, at::TensorList tensors) {
  double bytes = 0;
  Arithmetic arithmetic = Arithmetic::kSingle;
  bool is_typed = false;
  for (const at::Tensor& tensor : tensors) {
    bytes += bytes_of(tensor);
    if (is_typed || !tensor.defined() || !tensor.is_floating_point()) continue;
    arithmetic = arithmetic_of(tensor.scalar_type());
    is_typed = true;
  }
  recorder().add_work(std::string(name), arithmetic, flops, bytes);
}

// cuBLAS has a handle a thread, and LibTorch gives each its own workspace (CUDABlas.cpp).
void use_matrix_library() {
  thread_local int64_t seen_generation = 0;
  if (!device_config().is_gpu || seen_generation == shared().generation) return;
  seen_generation = shared().generation;
  recorder().keep_workspace(device_config().cublas_workspace_bytes);
}

}  // namespace shape_kernels

struct ShapeDevice::Kernels {
  torch::Library device = implementations(c10::DispatchKey::PrivateUse1);
  torch::Library autograd = implementations(c10::DispatchKey::AutogradPrivateUse1);
  torch::Library autocast = implementations(c10::DispatchKey::AutocastPrivateUse1);
  torch::Library all = {torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__,
                        __LINE__};
  torch::Library all_autocast = {torch::Library::IMPL, "_", c10::DispatchKey::AutocastPrivateUse1,
                                 __FILE__, __LINE__};
};

ShapeDevice::ShapeDevice(const ShapeDeviceConfig& config) {
  if (is_in_use.exchange(true)) throw InternalError("two shape devices at a time");
  register_device_once();
  shared().config = config;
  kernels_ = std::make_unique<Kernels>();
  shape_kernels::register_storage(kernels_->device);
  shape_kernels::register_layers(kernels_->device);
  shape_kernels::register_attention(kernels_->device);
  shape_kernels::register_attention_choice(kernels_->autograd);
  shape_kernels::register_autocast(kernels_->autocast);
  kernels_->all_autocast.fallback(torch::CppFunction::makeFallthrough());
  shape_kernels::register_fallback(kernels_->all);
}

ShapeDevice::~ShapeDevice() {
  kernels_.reset();
  shared().recorder.reset();
  is_in_use = false;
}

c10::Device ShapeDevice::device() { return {c10::DeviceType::PrivateUse1, 0}; }

void ShapeDevice::record_to(std::shared_ptr<TraceRecorder> recorder) {
  shared().recorder = std::move(recorder);
  ++shared().generation;
}

// The module's own handles and those of its layers share one TensorImpl a parameter, so it is
// changed in place rather than replaced.
void ShapeDevice::adopt(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  const auto move = [](const at::Tensor& tensor) {
    const at::Tensor moved =
        shape_kernels::empty_like_shape(tensor.sizes(), tensor.strides(), tensor.scalar_type());
    tensor.unsafeGetTensorImpl()->shallow_copy_from(moved.getIntrusivePtr());
  };
  for (const at::Tensor& parameter : module.parameters()) move(parameter);
  for (const at::Tensor& buffer : module.buffers()) move(buffer);
}

}  // namespace assay::estimate
