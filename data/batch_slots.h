// The memory of the pipeline: a fixed number of batch slots, allocated once, that travel between
// free list, workers and living batches.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "data/loader.h"

namespace assay::data::loader_detail {

// How much one slot holds.
struct SlotSize {
  size_t feature_bytes = 0;  // of a whole micro-batch
  size_t target_count = 0;
  size_t total_bytes = 0;  // features, padding to 64 bytes, targets
};
// Throws ConfigError if `samples` samples do not fit into the address space.
SlotSize slot_size(const SampleSpec& spec, int64_t samples);

// One allocation: features first, targets behind them.
struct Slot {
  Slot(HostMemory& source, const SlotSize& size);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  HostMemory& memory;
  size_t bytes;
  unsigned char* features = nullptr;
  int64_t* targets = nullptr;
  size_t sample_feature_bytes = 0;
  bool is_delivered = false;  // in a batch that next() gave away
};

// Thread-safe. Shared by the loader and every living batch, so that a batch may outlive the loader.
class SlotPool {
 public:
  SlotPool(HostMemory& memory, const SlotSize& size, const SampleSpec& spec, int64_t num_slots);
  // Blocks until a slot is free; null once a stop is requested.
  std::unique_ptr<Slot> acquire(const std::stop_token& stop);
  std::unique_ptr<Slot> try_acquire();
  void put_back(std::unique_ptr<Slot> slot);
  // A batch with this slot leaves the loader.
  void mark_delivered(Slot& slot);
  int64_t num_slots() const { return num_slots_; }
  int64_t num_delivered() const;

 private:
  const int64_t num_slots_;
  mutable std::mutex mutex_;
  std::condition_variable_any is_free_;
  std::vector<std::unique_ptr<Slot>> free_;  // guarded by mutex_
  int64_t num_delivered_ = 0;                // guarded by mutex_
};

}  // namespace assay::data::loader_detail
