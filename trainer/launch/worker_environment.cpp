#include "trainer/launch/worker_environment.h"

#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace assay::launch {
namespace {

std::string visible_device(int64_t local_rank, const VariableLookup& lookup) {
  const char* visible = lookup("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return cat(local_rank);
  const std::vector<std::string> devices = split(visible, ',');
  if (local_rank < static_cast<int64_t>(devices.size())) {
    return trimmed(devices[static_cast<size_t>(local_rank)]);
  }
  throw ConfigError(cat("CUDA_VISIBLE_DEVICES is ", quoted(visible), ", which has no entry for ",
                        "local rank ", local_rank,
                        ". Fix: start fewer ranks, or leave out --virtual-local-rank"));
}

}  // namespace

std::map<std::string, std::string> worker_environment(const LaunchOptions& options,
                                                      const WorkerPlace& place,
                                                      const VariableLookup& lookup) {
  const std::string rank = cat(place.node.first_rank + place.local_rank);
  const std::string world_size = cat(place.node.world_size);
  std::map<std::string, std::string> variables = {
      {"RANK", rank},
      {"LOCAL_RANK", cat(options.is_virtual_local_rank ? 0 : place.local_rank)},
      {"WORLD_SIZE", world_size},
      {"LOCAL_WORLD_SIZE", cat(place.num_local_ranks)},
      {"GROUP_RANK", cat(place.node.group_rank)},
      {"GROUP_WORLD_SIZE", cat(place.node.num_nodes)},
      {"ROLE_RANK", rank},  // one role for all
      {"ROLE_WORLD_SIZE", world_size},
      {"ROLE_NAME", options.role},
      {"MASTER_ADDR", place.node.master_addr},
      {"MASTER_PORT", cat(place.node.master_port)},
      {"TORCHELASTIC_RESTART_COUNT", cat(place.attempt)},
      {"TORCHELASTIC_MAX_RESTARTS", cat(options.max_restarts)},
      {"TORCHELASTIC_RUN_ID", options.run_id},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},  // rank 0 keeps the store
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", options.signals_text},
  };
  if (lookup("TORCH_NCCL_ASYNC_ERROR_HANDLING") == nullptr) {
    variables.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  }
  if (lookup("OMP_NUM_THREADS") == nullptr && place.num_local_ranks > 1) {
    variables.emplace("OMP_NUM_THREADS", "1");
  }
  if (options.is_virtual_local_rank) {
    variables["CUDA_VISIBLE_DEVICES"] = visible_device(place.local_rank, lookup);
  }
  return variables;
}

}  // namespace assay::launch
