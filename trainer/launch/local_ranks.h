// How many ranks a node starts, and on which CPUs each of them runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platform/environment.h"
#include "platform/roots.h"

namespace assay::launch {

// The GPUs that a process sees, in its order: all, or those that CUDA_VISIBLE_DEVICES names by
// number or by the start of a UUID, up to the first that does not exist (CUDA's rule). `visible`:
// that variable, nothing if unset.
std::vector<platform::GpuFacts> visible_gpus(const std::vector<platform::GpuFacts>& gpus,
                                             const std::optional<std::string>& visible);

// `text`: a number, gpu, cpu or auto (GPUs if there are any, else CPUs). Throws ConfigError for gpu
// without one.
int64_t count_local_ranks(const std::string& text, int64_t num_gpus, int64_t num_cpus);

// CPUs of each NUMA node, by the node's number; empty if the kernel does not say.
struct NumaNode {
  int64_t number = 0;
  std::vector<int64_t> cpus;
};
std::vector<NumaNode> read_numa_nodes(const platform::Roots& roots);
// "0-3,8" -> 0 1 2 3 8; empty if the text is anything else.
std::vector<int64_t> cpus_of_list(const std::string& list);
std::vector<int64_t> allowed_cpus();  // of this process

struct NumaRequest {
  int64_t num_local_ranks = 1;
  std::vector<int64_t> node_of_gpu;  // by local rank; -1 or absent: unknown
  std::vector<int64_t> allowed;      // CPUs this process may use
};
// The CPUs of each local rank: those of its GPU's node, or, where that is unknown for any of them,
// of nodes over which the ranks are spread evenly in order. Empty where none of them is allowed.
std::vector<std::vector<int64_t>> plan_cpus(const std::vector<NumaNode>& nodes,
                                            const NumaRequest& request);

}  // namespace assay::launch
