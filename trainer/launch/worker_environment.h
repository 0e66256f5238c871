// The variables that a rank gets on top of its launcher's own: torchrun's, by its rules. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "trainer/launch/launch_options.h"
#include "trainer/launch/rendezvous.h"

namespace assay::launch {

struct WorkerPlace {
  NodePlace node;
  int64_t num_local_ranks = 1;
  int64_t local_rank = 0;
  int64_t attempt = 0;
};

// `lookup` is this process's environment. Throws ConfigError where --virtual-local-rank meets a
// CUDA_VISIBLE_DEVICES with too few entries.
std::map<std::string, std::string> worker_environment(const LaunchOptions& options,
                                                      const WorkerPlace& place,
                                                      const VariableLookup& lookup);

}  // namespace assay::launch
