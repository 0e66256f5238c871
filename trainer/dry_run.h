// One process takes the role of one rank of many: the real data order, model, buckets and optimizer
// of that rank, with collectives that return at once. Says what the rank will hold and move; what
// it computes is nobody's training, so losses are not shown and nothing is written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  std::string device;
  int64_t dataset_samples = 0;
  int64_t global_batch = 0;
  int64_t steps_per_epoch = 0;
  int64_t samples_per_epoch = 0;                 // of this rank
  std::vector<std::vector<int64_t>> sample_ids;  // of this rank, by step
  int64_t parameter_bytes = 0;
  int64_t gradient_bytes = 0;
  int64_t optimizer_bytes = 0;          // that this rank keeps
  std::vector<int64_t> bucket_bytes;    // gradients in the order of reduction
  int64_t all_reduce_bytes = 0;         // a step, as they travel: gradients and all else
  int64_t broadcast_bytes = 0;          // a step; 0 unless the optimizer is sharded
  int64_t first_peak_device_bytes = 0;  // of the first step, which tries kernels out
  int64_t peak_device_bytes = 0;        // allocated, of a later step; 0 on a CPU
  int64_t peak_host_bytes = 0;          // resident, of the whole process
  double step_ms = 0;                   // median, without any waiting for others
  // What a ring sends from each rank for the all-reduces of a step: 2 (n-1)/n of their bytes.
  double ring_bytes() const;
};

// Takes a few real steps. Throws ConfigError for a rank outside the world, DataError and what a
// training step may throw.
DryRun dry_run(const DryRunRequest& request);

std::string dry_run_text(const DryRun& run);
std::string dry_run_json(const DryRun& run);  // one object; its member names are API

}  // namespace assay::trainer
