// Mixed precision for a scope: thread-local autocast switched on and put back as it was.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace assay::step {

// RAII. Nested guards restore the outer setting; the weight-cast cache is cleared at the outermost
// exit, so that no stale cast outlives an optimizer step. Thread-compatible: acts on its own
// thread.
class AutocastGuard {
 public:
  // `dtype` float32 or float64: does nothing.
  AutocastGuard(const c10::Device& device, c10::ScalarType dtype);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  c10::DeviceType device_;
  bool is_active_;
  bool was_enabled_ = false;
  c10::ScalarType previous_dtype_ = c10::ScalarType::Float;
};

}  // namespace assay::step
