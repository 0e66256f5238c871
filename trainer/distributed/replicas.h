// Are the ranks' copies of the state still equal? Cheap enough to ask every hundred steps: one sum
// over each tensor's bits and one small reduction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/distributed/world.h"

namespace assay::distributed {

struct ReplicaDifference {
  std::string tensor;
  std::vector<int64_t> ranks;  // those whose copy is not what most ranks have
};

// Collective; the same answer on every rank. Tensors that differ, in the given order; empty if all
// are equal. One changed bit is always seen; several could cancel in a sum only by chance of 2^-32.
std::vector<ReplicaDifference> compare_replicas(World& world, const std::vector<std::string>& names,
                                                const std::vector<at::Tensor>& tensors);

// "conv1.weight differs on rank 1 (host b, pid 7); ... (and 3 more tensors)".
std::string differences_text(const World& world, const std::vector<ReplicaDifference>& differences);

}  // namespace assay::distributed
