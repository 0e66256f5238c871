// The pipeline: worker threads read samples straight into batch slots, in order, ahead of the
// training thread, within a bounded set of slots allocated once.
//
//   DataLoader loader(*opened.train, sampler, {.num_workers = 2, .prefetch_factor = 2}, memory);
//   loader.start(position);
//   while (...) { Batch batch = loader.next(); ... }   // the slot goes back when batch dies
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/dataset.h"
#include "data/sampler.h"

namespace assay::data {

// Where slots live: ordinary memory, or pinned memory on the torch side.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* pointer, size_t bytes) = 0;
};
HostMemory& ordinary_memory();

struct LoaderConfig {
  int64_t num_workers = 0;      // 0: next() reads on the calling thread
  int64_t prefetch_factor = 2;  // slots a worker
};

namespace loader_detail {
struct Slot;
class SlotPool;
}  // namespace loader_detail

// One micro-batch of this rank. Move-only; gives its slot back when it dies, so keep it alive until
// copies out of it are done.
class Batch {
 public:
  Batch();
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  StepWindow window;               // the optimizer step it belongs to
  int64_t micro_step = 0;          // 0 .. num_micro_steps-1
  int64_t num_micro_steps = 1;     // of this step on this rank (the last window may be shorter)
  int64_t step_valid_targets = 0;  // over all ranks and micro-steps: the loss is divided by it
  std::vector<int64_t> ids;        // sample ids, in order
  int64_t valid_targets = 0;       // of this micro-batch

  const unsigned char* features() const;  // [count, feature_shape...], feature_type
  const int64_t* targets() const;         // [count, targets_per_sample]
  size_t feature_bytes() const;           // count * spec.feature_bytes()

 private:
  friend class DataLoader;
  std::unique_ptr<loader_detail::Slot> slot_;
  std::shared_ptr<loader_detail::SlotPool> pool_;
};

// Main thread only, except that its workers run inside. Workers' errors are rethrown by next() at
// their place in the order, and again by every later next() until start(). Data set, sampler and
// memory must outlive the loader, memory also the last Batch. There are max(2, num_workers *
// prefetch_factor) slots; next() throws InternalError when living batches hold every one of them.
class DataLoader {
 public:
  DataLoader(const Dataset& dataset, const Sampler& sampler, const LoaderConfig& config,
             HostMemory& memory = ordinary_memory());
  ~DataLoader();  // stops and joins the workers
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  // (Re)starts delivery at a position; never ends (epoch after epoch).
  void start(const DataPosition& position);
  Batch next();                   // blocks until the next micro-batch is there
  uint64_t slot_bytes() const;    // memory held by all slots, the bound of this pipeline
  int64_t ready_batches() const;  // finished and waiting: 0 when the training thread starves

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Default worker count for the whole machine: min(CPUs this process may use, 4 x GPUs in use), or
// the CPUs without a GPU; shared over the local ranks, at least 1 each.
int64_t default_num_workers(int64_t available_cpus, int64_t gpus_in_use, int64_t local_world_size);

}  // namespace assay::data
