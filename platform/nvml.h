// What the driver's management library says about the GPUs. The library is opened at run time and
// every call is optional: what a driver does not offer stays empty or 0, and nothing throws. Only
// questions are asked; no setting is changed.
#pragma once

#include <string>
#include <vector>

#include "platform/environment.h"

namespace assay::platform {

struct NvmlFacts {
  bool is_usable = false;
  std::string problem;              // why not, in the library's or the loader's own words
  std::string driver_version;       // "580.159.04"
  std::string driver_cuda_version;  // "13.0"
  std::vector<GpuFacts> gpus;       // numa_node is left at -1
  std::string topology;             // empty for fewer than two GPUs
};

// `library` is a name for the dynamic loader, or a path.
NvmlFacts read_nvml(const std::string& library);

}  // namespace assay::platform
