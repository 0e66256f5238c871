// One process takes the role of one rank of many: the real data order, model, buckets and optimizer
// of that rank, with collectives that return at once. Says what the rank will hold and move; what
// it computes is nobody's training, so losses are not shown and nothing is written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "trainer/config/run_config.h"

namespace assay::trainer {

struct DryRunRequest {
  config::RunConfig config;
  int64_t rank = 0;
  int64_t world_size = 1;
};

struct DryRun {
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t global_batch = 0;
  int64_t steps_per_epoch = 0;
  std::string device;
  std::vector<std::vector<int64_t>> sample_ids;  // of this rank, by step
  int64_t parameter_bytes = 0;
  int64_t optimizer_bytes = 0;        // that this rank keeps
  std::vector<int64_t> bucket_bytes;  // reduced each step, in this order
  int64_t peak_device_bytes = 0;      // 0 on a CPU
  double step_ms = 0;                 // median, without any waiting for others
};

// Takes a few real steps. Throws ConfigError for a rank outside the world, DataError and what a
// training step may throw.
DryRun dry_run(const DryRunRequest& request);

std::string dry_run_text(const DryRun& run);
std::string dry_run_json(const DryRun& run);

}  // namespace assay::trainer
