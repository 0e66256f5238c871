// The order of samples as a pure function of (seed, epoch, index), and its split into optimizer
// steps, micro-steps and ranks. Nothing is stored: a resume is O(1).
#pragma once

#include <cstdint>
#include <vector>

namespace assay::data {

// A permutation of 0..n-1 by a cycle-walking Feistel network over the next power of four, at least
// 256 (Black & Rogaway 2002, "Ciphers with arbitrary finite domains"). Stateless, O(1) a value.
class EpochPermutation {
 public:
  EpochPermutation(uint64_t seed, int64_t epoch, int64_t size);
  int64_t operator()(int64_t index) const;  // index in [0, size)

 private:
  int64_t size_;
  uint32_t half_bits_;
  uint64_t keys_[6];
};

struct SamplerConfig {
  int64_t dataset_size = 0;
  int64_t micro_batch_size = 1;
  int64_t grad_accum_steps = 1;
  int64_t world_size = 1;
  int64_t rank = 0;
  uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;  // drop the last, shorter window of an epoch
};

// Where the data stand: samples of this epoch that finished optimizer steps have consumed. It
// counts whole global batches, so it means the same on any world size.
struct DataPosition {
  int64_t epoch = 0;
  int64_t samples_in_epoch = 0;
  bool operator==(const DataPosition&) const = default;
};

// The samples of one optimizer step: positions [first, first + count) of the epoch's order.
struct StepWindow {
  int64_t epoch = 0;
  int64_t first = 0;
  int64_t count = 0;  // over all ranks and micro-steps; <= global batch
  DataPosition next;  // the position after this step
};

// Thread-compatible; const calls are thread-safe.
class Sampler {
 public:
  // Throws DataError if no step would be possible (empty data; fewer samples than one global batch
  // with drop_last), naming both numbers; ConfigError for sizes below 1.
  explicit Sampler(const SamplerConfig& config);
  int64_t global_batch_size() const;
  int64_t steps_per_epoch() const;
  // A position at or behind the end of an epoch means the start of the next. Throws DataError for
  // negative numbers.
  StepWindow window_at(const DataPosition& position) const;
  // The ids of this rank for one micro-step of a window, in order; may be short or empty at the
  // end of an epoch. Micro-step m of rank r takes places (m * world_size + r) * micro_batch_size
  // and following of the window.
  std::vector<int64_t> rank_ids(const StepWindow& window, int64_t micro_step) const;
  // Every id of a window in the epoch's order.
  std::vector<int64_t> window_ids(const StepWindow& window) const;
  const SamplerConfig& config() const { return config_; }

 private:
  SamplerConfig config_;
};

}  // namespace assay::data
