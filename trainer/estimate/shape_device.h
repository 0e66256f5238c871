// A device that computes shapes only: its tensors have sizes, strides and types but no numbers, and
// each allocation and operation is written down. The real model, loss, backward pass and optimizer
// run on it, so that what a training step needs is counted, not described a second time.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "trainer/estimate/trace_recorder.h"

namespace torch::nn {
class Module;
}

namespace assay::estimate {

// What the device stands for; decides which attention and which library workspaces are counted.
struct ShapeDeviceConfig {
  bool is_gpu = true;
  int64_t cublas_workspace_bytes = 0;  // one a thread that multiplies matrices
};

// Built on LibTorch's device type for extensions (PrivateUse1), for which it registers kernels
// while it lives: operators whose meta kernel knows the shapes go there, the others have rules of
// ours. At most one at a time; use it from one thread (the backward pass adds its own).
class ShapeDevice {
 public:
  explicit ShapeDevice(const ShapeDeviceConfig& config);
  ~ShapeDevice();
  ShapeDevice(const ShapeDevice&) = delete;
  ShapeDevice& operator=(const ShapeDevice&) = delete;

  static c10::Device device();

  // From now on everything is written down in `recorder`, which tensors keep alive.
  void record_to(std::shared_ptr<TraceRecorder> recorder);

  // Moves a module's parameters and buffers from the meta device to this one, in place.
  void adopt(torch::nn::Module& module);

 private:
  struct Kernels;
  std::unique_ptr<Kernels> kernels_;
};

}  // namespace assay::estimate
