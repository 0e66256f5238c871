// Keeping a run's global batch when its number of ranks or the split into micro-batches changes.
// Torch-free.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/config/run_config.h"

namespace assay::run {

struct BatchSplit {
  int64_t batch_size = 1;
  int64_t gradient_accumulation_steps = 1;
  int64_t world_size = 1;
  bool operator==(const BatchSplit&) const = default;
};

int64_t global_batch_size(const BatchSplit& split);  // saturates instead of overflowing
// "24 (batch_size 4 x gradient_accumulation_steps 3 x world_size 2)".
std::string global_batch_text(const BatchSplit& split);

// The split of `before`'s global batch on `world_size` ranks: the micro-batch stays if it can and
// accumulation is adapted; otherwise the micro-batch becomes the largest smaller one that divides.
// Throws ConfigError with both numbers if the global batch does not divide by the ranks.
BatchSplit split_for_world(const BatchSplit& before, int64_t world_size);

// Which of the two the user gave.
struct GivenBatch {
  bool has_batch_size = false;
  bool has_accumulation = false;
  bool may_change = false;  // --allow_config_change names one of them
};

// The split for a resume: `wanted` is the resumed configuration (unset parts are the run's own).
// Throws ConfigError if the global batch would change.
BatchSplit resumed_split(const BatchSplit& before, const BatchSplit& wanted,
                         const GivenBatch& given);

}  // namespace assay::run
