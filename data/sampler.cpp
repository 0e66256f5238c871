#include "data/sampler.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/mix64.h"

namespace assay::data {
namespace {

// Below 256 values a Feistel network reaches too few permutations to look uniform; walking from a
// larger domain into a small one costs at most 256 / n rounds a value on average.
constexpr uint32_t kMinHalfBits = 4;

uint32_t half_bits_for(int64_t size) {
  uint32_t half_bits = kMinHalfBits;
  while (half_bits < 32 && (uint64_t{1} << (2 * half_bits)) < static_cast<uint64_t>(size)) {
    ++half_bits;
  }
  return half_bits;
}

void check_at_least_one(const char* name, int64_t value) {
  if (value >= 1) return;
  throw ConfigError(cat(name, " is ", value, ", must be >= 1"));
}

int64_t checked_product(int64_t left, int64_t right) {
  int64_t product = 0;
  if (__builtin_mul_overflow(left, right, &product)) {
    throw ConfigError(cat("the global batch size overflows 64 bits: ", left, " x ", right,
                          ". Fix: a smaller batch_size or gradient_accumulation_steps"));
  }
  return product;
}

}  // namespace

EpochPermutation::EpochPermutation(uint64_t seed, int64_t epoch, int64_t size)
    : size_(size), half_bits_(half_bits_for(size)) {
  // The seed is mixed before the epoch comes in, so that (seed, epoch + 1) and (seed + 1, epoch)
  // have nothing in common.
  uint64_t state =
      mix64(mix64(seed + kMixIncrement) ^ (static_cast<uint64_t>(epoch) * kMixIncrement));
  for (uint64_t& key : keys_) {
    state += kMixIncrement;
    key = mix64(state);
  }
}

int64_t EpochPermutation::operator()(int64_t index) const {
  if (index < 0 || index >= size_) {
    throw InternalError(cat("epoch order asked for place ", index, " of ", size_));
  }
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t value = static_cast<uint64_t>(index);
  do {  // cycle walking: the orbit comes back into [0, size) because it contains `index` itself
    uint64_t left = value >> half_bits_;
    uint64_t right = value & mask;
    for (const uint64_t key : keys_) {
      const uint64_t next = left ^ (mix64(right ^ key) & mask);
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(value);
}

Sampler::Sampler(const SamplerConfig& config) : config_(config) {
  check_at_least_one("batch_size", config.micro_batch_size);
  check_at_least_one("gradient_accumulation_steps", config.grad_accum_steps);
  check_at_least_one("world_size", config.world_size);
  if (config.rank < 0 || config.rank >= config.world_size) {
    throw ConfigError(cat("rank is ", config.rank, ", must be in [0, ", config.world_size, ")"));
  }
  const int64_t global_batch = checked_product(
      checked_product(config.micro_batch_size, config.grad_accum_steps), config.world_size);
  if (config.dataset_size < 1) {
    throw DataError(cat("the data set has ", config.dataset_size,
                        " samples, must have at least 1 for a global batch of ", global_batch,
                        ". Fix: check --data_dir and --max_train_samples"));
  }
  if (config.drop_last && config.dataset_size < global_batch) {
    throw DataError(cat("no step is possible: the data set has ", config.dataset_size,
                        " samples, one global batch needs ", global_batch, " (batch_size ",
                        config.micro_batch_size, " x gradient_accumulation_steps ",
                        config.grad_accum_steps, " x world_size ", config.world_size,
                        ") and drop_last drops the rest. Fix: a smaller batch_size, or "
                        "--no-drop_last"));
  }
}

int64_t Sampler::global_batch_size() const {
  return config_.micro_batch_size * config_.grad_accum_steps * config_.world_size;
}

int64_t Sampler::steps_per_epoch() const {
  const int64_t full = config_.dataset_size / global_batch_size();
  const bool has_short_window = config_.dataset_size % global_batch_size() != 0;
  return full + (has_short_window && !config_.drop_last ? 1 : 0);
}

StepWindow Sampler::window_at(const DataPosition& position) const {
  if (position.epoch < 0 || position.samples_in_epoch < 0) {
    throw DataError(cat("data position is epoch ", position.epoch, ", sample ",
                        position.samples_in_epoch, "; both must be >= 0"));
  }
  const int64_t global_batch = global_batch_size();
  const int64_t size = config_.dataset_size;
  const int64_t usable = config_.drop_last ? size - size % global_batch : size;
  // A rest shorter than a global batch can stand behind a position that came from another global
  // batch size; with drop_last it is dropped like any other.
  const int64_t needed = config_.drop_last ? global_batch : 1;
  StepWindow window;
  window.epoch = position.epoch;
  window.first = position.samples_in_epoch;
  if (window.first > usable - needed) {
    ++window.epoch;
    window.first = 0;
  }
  window.count = std::min(global_batch, usable - window.first);
  const int64_t behind = window.first + window.count;
  window.next = behind > usable - needed ? DataPosition{window.epoch + 1, 0}
                                         : DataPosition{window.epoch, behind};
  return window;
}

namespace {

std::vector<int64_t> ids_between(const SamplerConfig& config, const StepWindow& window,
                                 int64_t begin, int64_t end) {
  std::vector<int64_t> ids;
  ids.reserve(static_cast<size_t>(std::max<int64_t>(end - begin, 0)));
  const EpochPermutation order(config.seed, window.epoch, config.dataset_size);
  for (int64_t place = begin; place < end; ++place) {
    const int64_t index = window.first + place;
    ids.push_back(config.shuffle ? order(index) : index);
  }
  return ids;
}

}  // namespace

std::vector<int64_t> Sampler::rank_ids(const StepWindow& window, int64_t micro_step) const {
  const int64_t micro_batch = micro_step * config_.world_size + config_.rank;
  const int64_t begin = std::min(micro_batch * config_.micro_batch_size, window.count);
  const int64_t end = std::min(begin + config_.micro_batch_size, window.count);
  return ids_between(config_, window, begin, end);
}

std::vector<int64_t> Sampler::window_ids(const StepWindow& window) const {
  return ids_between(config_, window, 0, window.count);
}

}  // namespace assay::data
