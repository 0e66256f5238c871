// Run folders made by hand with the project's own writers: no trainer, but the real formats, so
// that a difference can be planted in one place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::harness {

struct FabricatedRun {
  int64_t steps = 10;
  int64_t save_steps = 5;
  std::string state_digest = "same";  // of result.json
  // Planted differences; 0: none.
  int64_t missing_step = 0;     // left out of metrics.jsonl
  int64_t double_step = 0;      // there twice
  int64_t other_loss_step = 0;  // its loss is larger by other_loss
  double other_loss = 0;
  int64_t other_rate_step = 0;   // its learning rate is 1 % larger
  int64_t swapped_ids_step = 0;  // its first two samples change places
  float weight_change = 0;       // added to one weight of the last checkpoint
  int64_t rng_change = 0;        // added to a byte of the last checkpoint's RNG
};

// Writes metrics.jsonl, ids-rank0.jsonl, checkpoint-<step>/ and result.json into `folder`.
void write_run(const std::string& folder, const FabricatedRun& run);

}  // namespace assay::harness
