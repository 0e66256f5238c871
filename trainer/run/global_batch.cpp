#include "trainer/run/global_batch.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace assay::run {
namespace {

int64_t saturating_product(int64_t left, int64_t right) {
  int64_t product = 0;
  return __builtin_mul_overflow(left, right, &product) ? std::numeric_limits<int64_t>::max()
                                                       : product;
}

}  // namespace

int64_t global_batch_size(const BatchSplit& split) {
  return saturating_product(saturating_product(split.batch_size, split.gradient_accumulation_steps),
                            split.world_size);
}

std::string global_batch_text(const BatchSplit& split) {
  return cat(global_batch_size(split), " (batch_size ", split.batch_size,
             " x gradient_accumulation_steps ", split.gradient_accumulation_steps, " x world_size ",
             split.world_size, ")");
}

BatchSplit split_for_world(const BatchSplit& before, int64_t world_size) {
  const int64_t global = global_batch_size(before);
  if (global % world_size != 0) {
    throw ConfigError(cat("this run's global batch is ", global_batch_text(before),
                          ", which does not divide by ", world_size,
                          " ranks. Fix: resume on a number of ranks that divides ", global));
  }
  const int64_t per_rank = global / world_size;
  int64_t micro = std::min(before.batch_size, per_rank);
  while (per_rank % micro != 0) --micro;
  return {micro, per_rank / micro, world_size};
}

BatchSplit resumed_split(const BatchSplit& before, const BatchSplit& wanted,
                         const GivenBatch& given) {
  const int64_t global = global_batch_size(before);
  if (!given.has_batch_size && !given.has_accumulation) {
    return split_for_world(before, wanted.world_size);
  }
  BatchSplit split = wanted;
  if (!given.has_accumulation && global % (wanted.batch_size * wanted.world_size) == 0) {
    split.gradient_accumulation_steps = global / (wanted.batch_size * wanted.world_size);
  }
  const int64_t others = wanted.gradient_accumulation_steps * wanted.world_size;
  if (!given.has_batch_size && global % others == 0) split.batch_size = global / others;
  if (global_batch_size(split) == global || given.may_change) return split;
  throw ConfigError(cat("a resume must not change the global batch: ", global_batch_text(before),
                        " there, ", global_batch_text(split),
                        " now. Fix: leave batch_size and gradient_accumulation_steps out, or "
                        "--allow_config_change batch_size if another run is what you want"));
}

}  // namespace assay::run
