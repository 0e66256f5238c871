#include "trainer/step/autocast.h"

#include <ATen/autocast_mode.h>

namespace assay::step {

AutocastGuard::AutocastGuard(const c10::Device& device, c10::ScalarType dtype)
    : device_(device.type()),
      is_active_(dtype == c10::ScalarType::BFloat16 || dtype == c10::ScalarType::Half) {
  if (!is_active_) return;
  was_enabled_ = at::autocast::is_autocast_enabled(device_);
  previous_dtype_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, dtype);
  at::autocast::increment_nesting();
}

AutocastGuard::~AutocastGuard() {
  if (!is_active_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, previous_dtype_);
}

}  // namespace assay::step
