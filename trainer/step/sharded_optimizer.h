// The optimizer's state spread over the ranks (ZeRO-1; Rajbhandari et al. 2020, sec. 5.1): each
// rank updates its share of the parameters and sends them to the others. Same result as the plain
// one.
#pragma once

#include <memory>
#include <vector>

#include "trainer/distributed/world.h"
#include "trainer/step/optimizer.h"

namespace assay::step {

// Which rank updates which parameter: the largest first, each to the rank with the least so far.
// Whole parameters only. Depends on nothing but the sizes and the number of ranks.
std::vector<int64_t> assign_owners(const std::vector<int64_t>& sizes, int64_t world_size);

// Collective, as are all its calls. state() has the names of the plain optimizer's, on rank 0 all
// of them, on the others those of their own share.
std::unique_ptr<Optimizer> make_sharded_optimizer(const config::OptimizerConfig& config,
                                                  std::vector<NamedTensor> parameters,
                                                  distributed::World& world);

}  // namespace assay::step
