// Is there a GPU, does its driver answer, and what is it? Fills the GPU part of the record.
#pragma once

#include <string>
#include <string_view>

#include "platform/environment.h"
#include "platform/roots.h"

namespace assay::platform {

// Sets is_gpu_present and all fields after it.
void read_gpus(const Roots& roots, Environment& environment);

// "580.159.04" out of the text of /proc/driver/nvidia/version; empty if there is none.
std::string driver_version_in(std::string_view text);

}  // namespace assay::platform
