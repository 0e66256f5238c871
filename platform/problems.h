// What looks wrong, judged for a LibTorch of a given CUDA.
#pragma once

#include <string_view>
#include <vector>

#include "platform/environment.h"

namespace assay::platform {

// As find_problems, for a LibTorch built for this CUDA ("13.0", "12.6"); empty counts as 13.0, the
// pinned one. CUDA 12 takes older drivers and GPUs.
std::vector<EnvironmentProblem> find_problems_for(const Environment& environment,
                                                  std::string_view cuda_version);

// First number of a driver version: 580 of "580.159.04"; 0 if there is none.
int64_t driver_major(std::string_view driver_version);

}  // namespace assay::platform
