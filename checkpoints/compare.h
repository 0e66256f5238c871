// Continuity: the first differing step and field of two runs or two checkpoints. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::checkpoints {

struct Difference {
  int64_t step = 0;
  std::string where;  // "metrics.jsonl step 17", "checkpoint-30 optimizer.safetensors"
  std::string field;  // "loss", "exp_avg/conv1.weight[12]", "rng"
  std::string left;
  std::string right;
  std::string likely_reason;       // "data order", "RNG not restored", ... ; may be empty
  double relative_difference = 0;  // of a tensor: ||left-right|| / ||right||, inf if right is 0
};

struct Comparison {
  std::string left;
  std::string right;
  int64_t compared_steps = 0;  // metrics lines that both have
  int64_t compared_checkpoints = 0;
  int64_t compared_tensors = 0;
  double max_relative_difference = 0;  // over differing tensors, as above
  // In order of step; the first is the verdict's. A log field is listed at its first step only.
  std::vector<Difference> differences;
  bool is_bit_equal() const { return differences.empty(); }
};

// Two run folders (metrics without times, ids ledgers, checkpoints of common steps) or two
// checkpoint folders (every tensor and field; folders kept as manifests are compared by checksums).
// Throws CheckpointError if one is neither, or is damaged.
Comparison compare_runs(const std::string& left, const std::string& right);

}  // namespace assay::checkpoints
