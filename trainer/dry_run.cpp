#include "trainer/dry_run.h"

#include <algorithm>
#include <memory>
#include <sys/resource.h>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/text.h"
#include "data/loader.h"
#include "trainer/distributed/process_group.h"
#include "trainer/distributed/world.h"
#include "trainer/rank_setup.h"
#include "trainer/run_setup.h"
#include "trainer/step/device.h"
#include "trainer/step/device_batch.h"
#include "trainer/step/train_step.h"

namespace assay::trainer {
namespace {

constexpr int64_t kSteps = 5;
constexpr int64_t kWarmupSteps = 1;  // chooses algorithms, fills caches

int64_t bytes_of(const std::vector<step::NamedTensor>& tensors) {
  int64_t bytes = 0;
  for (const step::NamedTensor& entry : tensors) {
    bytes += static_cast<int64_t>(entry.tensor.nbytes());
  }
  return bytes;
}

void check(const DryRunRequest& request) {
  if (request.rank >= 0 && request.rank < request.world_size) return;
  throw ConfigError(cat("--dry-run-rank is ", request.rank, ", must be from 0 to ",
                        request.world_size - 1, " for --world ", request.world_size,
                        ". Fix: choose one of these"));
}

// All windows of an epoch are alike, but for the last.
int64_t samples_per_epoch(const data::Sampler& sampler) {
  const data::SamplerConfig& config = sampler.config();
  const int64_t full_steps = config.dataset_size / sampler.global_batch_size();
  int64_t samples = full_steps * config.micro_batch_size * config.grad_accum_steps;
  if (full_steps == sampler.steps_per_epoch()) return samples;
  const data::StepWindow last = sampler.window_at({0, full_steps * sampler.global_batch_size()});
  for (int64_t micro_step = 0; micro_step < config.grad_accum_steps; ++micro_step) {
    samples += static_cast<int64_t>(sampler.rank_ids(last, micro_step).size());
  }
  return samples;
}

int64_t peak_host_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

// Everything that the rank owns, built as a run builds it.
class Role {
 public:
  explicit Role(const DryRunRequest& request)
      : config_(request.config),
        page_(launch::ProgressPage::create()),
        world_(distributed::World::in_role(request.rank, request.world_size, page_)),
        device_(step::choose_device(config_.precision == "fp64" ? "cpu" : config_.device, 0, true)),
        data_(open_run_data(config_)),
        sampler_(sampler_config(config_, data_, world_)) {
    step::apply_numeric_settings(config_, device_, 1);
    state_ = step::make_initial_state(config_, device_, target_steps(config_, sampler_), world_);
    share_batch_norms(world_, config_, sampler_, state_);
    reducer_ = make_reducer(world_, config_, state_);
  }

  DryRun run() {
    DryRun run;
    run.rank = world_.rank();
    run.world_size = world_.size();
    run.device = device_.str();
    run.dataset_samples = sampler_.config().dataset_size;
    run.global_batch = sampler_.global_batch_size();
    run.steps_per_epoch = sampler_.steps_per_epoch();
    run.samples_per_epoch = samples_per_epoch(sampler_);
    take_steps(run);
    run.parameter_bytes = bytes_of(state_.parameters);
    for (const step::NamedTensor& entry : state_.parameters) {
      run.gradient_bytes += static_cast<int64_t>(entry.tensor.grad().nbytes());
    }
    run.optimizer_bytes = bytes_of(state_.optimizer->state());
    for (const auto& bucket : reducer_->buckets()) run.bucket_bytes.push_back(bucket.bytes);
    run.peak_host_bytes = peak_host_bytes();
    return run;
  }

 private:
  void take_steps(DryRun& run) {
    const int64_t workers = worker_count(config_, device_, {});
    std::unique_ptr<data::HostMemory> pinned;
    if (device_.is_cuda() && config_.data.pin_memory) {
      pinned = std::make_unique<step::PinnedMemory>();
    }
    data::DataLoader loader(
        *data_.train, sampler_,
        {.num_workers = workers, .prefetch_factor = config_.data.prefetch_factor},
        pinned ? *pinned : data::ordinary_memory());
    step::TrainStep train_step(config_, data_.train->spec(), sampler_, device_,
                               {world_, page_, reducer_.get()});
    step::StepClock clock(device_);
    loader.start(state_.position);
    std::vector<double> times;
    for (int64_t i = 0; i < kSteps; ++i) {
      const distributed::CollectiveTally before = distributed::role_tally(*world_.group());
      step::PendingStep pending = train_step.run(state_, loader, clock);
      run.sample_ids.push_back(pending.ids);
      const step::ResolvedStep resolved = train_step.resolve(state_, pending);
      const distributed::CollectiveTally after = distributed::role_tally(*world_.group());
      run.all_reduce_bytes = after.all_reduce_bytes - before.all_reduce_bytes;
      run.broadcast_bytes = after.broadcast_bytes - before.broadcast_bytes;
      const int64_t peak = resolved.record.memory.peak_allocated_bytes;
      if (i < kWarmupSteps) {
        run.first_peak_device_bytes = peak;
        continue;
      }
      run.peak_device_bytes = std::max(run.peak_device_bytes, peak);
      times.push_back(resolved.record.time_ms);
    }
    std::sort(times.begin(), times.end());
    run.step_ms = times[times.size() / 2];
  }

  const config::RunConfig& config_;
  launch::ProgressPage page_;
  distributed::World world_;
  c10::Device device_;
  data::OpenedData data_;
  data::Sampler sampler_;
  step::TrainState state_;
  std::unique_ptr<distributed::GradientReducer> reducer_;
};

}  // namespace

DryRun dry_run(const DryRunRequest& request) {
  check(request);
  set_fault_rank(request.rank);
  return Role(request).run();
}

}  // namespace assay::trainer
