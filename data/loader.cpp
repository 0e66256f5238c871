#include "data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/text.h"
#include "data/batch_slots.h"
#include "data/micro_batches.h"

namespace assay::data {
namespace {

constexpr int64_t kMaxWorkers = 1024;  // a typing mistake, not a machine

int64_t slot_count(const LoaderConfig& config) {
  if (config.num_workers < 0 || config.num_workers > kMaxWorkers) {
    throw ConfigError(cat("num_workers is ", config.num_workers, ", must be in [0, ", kMaxWorkers,
                          "]. Fix: --num_workers 0 reads on the training thread"));
  }
  if (config.prefetch_factor < 1 || config.prefetch_factor > kMaxWorkers) {
    throw ConfigError(cat("prefetch_factor is ", config.prefetch_factor, ", must be in [1, ",
                          kMaxWorkers, "]. Fix: --prefetch_factor 2"));
  }
  return std::max<int64_t>(2, config.num_workers * config.prefetch_factor);
}

void read_sample(const Dataset& dataset, const ReadContext& context, int64_t id,
                 std::span<unsigned char> features, std::span<int64_t> targets) {
  const FaultOutcome fault = fault_point("data.read");
  if (fault.error_number != 0 || fault.is_short) {
    throw DataError(cat("cannot read sample ", id, " of ", dataset.size(), ": ",
                        fault.is_short ? "the read ended early" : std::strerror(fault.error_number),
                        " (fault point data.read)"));
  }
  dataset.read_for_training(context, id, features, targets);
}

}  // namespace

struct DataLoader::State {
  // A micro-batch between being handed to a worker and being fetched by next(). It keeps its slot
  // also on failure: so at most num_slots deliveries are open, and sequence % num_slots is unique.
  struct Delivery {
    Batch batch;
    std::exception_ptr error;
    bool is_ready = false;
  };

  State(const Dataset& the_dataset, const Sampler& the_sampler, const LoaderConfig& the_config,
        HostMemory& memory)
      : dataset(the_dataset),
        seed(the_sampler.config().seed),
        num_workers(the_config.num_workers),
        size(loader_detail::slot_size(the_dataset.spec(), the_sampler.config().micro_batch_size)),
        pool(std::make_shared<loader_detail::SlotPool>(memory, size, the_dataset.spec(),
                                                       slot_count(the_config))),
        planner(the_dataset, the_sampler),
        ring(static_cast<size_t>(pool->num_slots())) {}

  void stop();
  void work(const std::stop_token& stop_token);
  void fill(Batch& batch, MicroBatchPlan plan) const;
  Batch read_here();
  Batch take_next();
  Delivery& delivery(int64_t sequence) { return ring[static_cast<size_t>(sequence) % ring.size()]; }

  const Dataset& dataset;
  const uint64_t seed;
  const int64_t num_workers;
  const loader_detail::SlotSize size;
  const std::shared_ptr<loader_detail::SlotPool> pool;
  bool is_started = false;     // main thread only
  std::exception_ptr failure;  // main thread only; sticks until start()

  mutable std::mutex mutex;
  std::condition_variable ready;
  MicroBatchPlanner planner;   // guarded by mutex
  std::vector<Delivery> ring;  // guarded by mutex
  int64_t num_handed_out = 0;  // guarded by mutex
  int64_t num_fetched = 0;     // guarded by mutex

  std::vector<std::jthread> workers;  // last: joined before anything that they use goes
};

void DataLoader::State::stop() {
  for (std::jthread& worker : workers) worker.request_stop();  // all at once, then join
  workers.clear();
}

// Reads the samples of a plan into the batch's slot.
void DataLoader::State::fill(Batch& batch, MicroBatchPlan plan) const {
  batch.window = plan.window;
  batch.micro_step = plan.micro_step;
  batch.num_micro_steps = plan.num_micro_steps;
  batch.step_valid_targets = plan.step_valid_targets;
  batch.valid_targets = plan.valid_targets;
  batch.ids = std::move(plan.ids);
  const size_t feature_bytes = dataset.spec().feature_bytes();
  const auto target_count = static_cast<size_t>(dataset.spec().targets_per_sample);
  const ReadContext context{.seed = seed, .epoch = plan.window.epoch};
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    read_sample(dataset, context, batch.ids[i],
                {batch.slot_->features + i * feature_bytes, feature_bytes},
                {batch.slot_->targets + i * target_count, target_count});
  }
}

void DataLoader::State::work(const std::stop_token& stop_token) {
  // A slot first, then a place in the order: a worker that holds a place never waits for a slot,
  // so the batch that next() waits for is always being read.
  while (std::unique_ptr<loader_detail::Slot> slot = pool->acquire(stop_token)) {
    Delivery done;
    done.batch.pool_ = pool;
    done.batch.slot_ = std::move(slot);
    int64_t sequence = 0;
    try {
      MicroBatchPlan plan;
      {
        const std::lock_guard lock(mutex);
        sequence = num_handed_out++;
        plan = planner.next();
      }
      fill(done.batch, std::move(plan));
    } catch (...) {  // thread boundary: next() rethrows it
      done.error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex);
      done.is_ready = true;
      delivery(sequence) = std::move(done);
    }
    ready.notify_one();
  }
}

Batch DataLoader::State::read_here() {
  Batch batch;
  batch.pool_ = pool;
  batch.slot_ = pool->try_acquire();
  try {
    fill(batch, planner.next());
  } catch (...) {  // remembered, so that a failed stream never goes on behind its gap
    failure = std::current_exception();
    throw;
  }
  return batch;
}

Batch DataLoader::State::take_next() {
  std::unique_lock lock(mutex);
  Delivery& next = delivery(num_fetched);
  ready.wait(lock, [&next] { return next.is_ready; });
  if (next.error) {
    failure = next.error;
    std::rethrow_exception(failure);
  }
  ++num_fetched;
  next.is_ready = false;
  return std::move(next.batch);
}

DataLoader::DataLoader(const Dataset& dataset, const Sampler& sampler, const LoaderConfig& config,
                       HostMemory& memory) {
  if (sampler.config().dataset_size != dataset.size()) {
    throw InternalError(cat("the sampler orders ", sampler.config().dataset_size,
                            " samples, the data set has ", dataset.size()));
  }
  state_ = std::make_unique<State>(dataset, sampler, config, memory);
}

DataLoader::~DataLoader() { state_->stop(); }

void DataLoader::start(const DataPosition& position) {
  State& state = *state_;
  state.stop();
  state.failure = nullptr;
  state.planner.start(position);
  for (State::Delivery& delivery : state.ring) delivery = State::Delivery{};
  state.num_handed_out = 0;
  state.num_fetched = 0;
  state.is_started = true;
  for (int64_t i = 0; i < state.num_workers; ++i) {
    try {
      state.workers.emplace_back(
          [&state](const std::stop_token& stop_token) { state.work(stop_token); });
    } catch (const std::system_error& error) {
      state.stop();
      throw DataError(cat("cannot start data worker ", i + 1, " of ", state.num_workers, ": ",
                          error.what(), ". Fix: lower --num_workers"));
    }
  }
}

Batch DataLoader::next() {
  State& state = *state_;
  if (!state.is_started) throw InternalError("DataLoader::next() before start()");
  if (state.failure) std::rethrow_exception(state.failure);
  if (state.pool->num_delivered() == state.pool->num_slots()) {
    throw InternalError(cat("DataLoader::next() with all ", state.pool->num_slots(),
                            " slots held by living batches: it would wait forever"));
  }
  Batch batch = state.num_workers == 0 ? state.read_here() : state.take_next();
  state.pool->mark_delivered(*batch.slot_);
  return batch;
}

uint64_t DataLoader::slot_bytes() const {
  return state_->size.total_bytes * static_cast<uint64_t>(state_->pool->num_slots());
}

int64_t DataLoader::ready_batches() const {
  const std::lock_guard lock(state_->mutex);
  return std::count_if(state_->ring.begin(), state_->ring.end(),
                       [](const State::Delivery& delivery) { return delivery.is_ready; });
}

int64_t default_num_workers(int64_t available_cpus, int64_t gpus_in_use, int64_t local_world_size) {
  const int64_t machine =
      gpus_in_use > 0 ? std::min(available_cpus, 4 * gpus_in_use) : available_cpus;
  return std::max<int64_t>(1, machine / std::max<int64_t>(1, local_world_size));
}

}  // namespace assay::data
