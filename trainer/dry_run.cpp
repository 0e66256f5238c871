#include "trainer/dry_run.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "data/loader.h"
#include "trainer/distributed/world.h"
#include "trainer/rank_setup.h"
#include "trainer/run_setup.h"
#include "trainer/step/device.h"
#include "trainer/step/train_step.h"

namespace assay::trainer {
namespace {

constexpr int64_t kSteps = 5;

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

}  // namespace

DryRun dry_run(const DryRunRequest& request) {
  check(request);
  const config::RunConfig& config = request.config;
  launch::ProgressPage page = launch::ProgressPage::create();
  distributed::World world = distributed::World::in_role(request.rank, request.world_size, page);
  const c10::Device device =
      step::choose_device(config.precision == "fp64" ? "cpu" : config.device, 0, true);
  step::apply_numeric_settings(config, device, 1);
  const data::OpenedData data = open_run_data(config);
  const data::Sampler sampler(sampler_config(config, data, world));
  step::TrainState state =
      step::make_initial_state(config, device, target_steps(config, sampler), world);
  share_batch_norms(world, config, sampler, state);
  const auto reducer = make_reducer(world, config, state);
  data::DataLoader loader(*data.train, sampler,
                          {.num_workers = 0, .prefetch_factor = config.data.prefetch_factor});
  const step::Ranks ranks{world, page, reducer.get()};
  step::TrainStep train_step(config, data.train->spec(), sampler, device, ranks);
  step::StepClock clock(device);

  DryRun run;
  run.rank = request.rank;
  run.world_size = request.world_size;
  run.global_batch = config.batch_size * config.gradient_accumulation_steps * request.world_size;
  run.steps_per_epoch = sampler.steps_per_epoch();
  run.device = device.str();
  std::vector<double> times;
  loader.start(state.position);
  for (int64_t i = 0; i < kSteps; ++i) {
    step::PendingStep pending = train_step.run(state, loader, clock);
    run.sample_ids.push_back(pending.ids);
    const step::ResolvedStep resolved = train_step.resolve(state, pending);
    times.push_back(resolved.record.time_ms);
    run.peak_device_bytes =
        std::max(run.peak_device_bytes, resolved.record.memory.peak_allocated_bytes);
  }
  std::sort(times.begin(), times.end());
  run.step_ms = times[times.size() / 2];
  run.parameter_bytes = bytes_of(state.parameters);
  run.optimizer_bytes = bytes_of(state.optimizer->state());
  if (reducer) {
    for (const auto& bucket : reducer->buckets()) run.bucket_bytes.push_back(bucket.bytes);
  }
  return run;
}

std::string dry_run_text(const DryRun& run) {
  int64_t reduced = 0;
  for (const int64_t bytes : run.bucket_bytes) reduced += bytes;
  std::string text =
      cat("In the role of rank ", run.rank, " of ", run.world_size, " on ", run.device,
          " (collectives return at once; nothing is trained or written)\n",
          "  global batch        ", run.global_batch, ", ", run.steps_per_epoch,
          " steps an epoch\n", "  weights             ", bytes_text(run.parameter_bytes), "\n",
          "  optimizer, here     ", bytes_text(run.optimizer_bytes), "\n", "  reduced a step      ",
          bytes_text(reduced), " in ", run.bucket_bytes.size(), " bucket(s)\n",
          "  step without waits  ", run.step_ms, " ms (median of ", kSteps, ")\n");
  if (run.peak_device_bytes > 0) {
    text += cat("  peak on the device  ", bytes_text(run.peak_device_bytes), "\n");
  }
  for (size_t i = 0; i < run.sample_ids.size(); ++i) {
    text += cat("  samples of step ", i + 1, "   ");
    const auto& ids = run.sample_ids[i];
    constexpr size_t kShown = 8;
    for (size_t k = 0; k < std::min(ids.size(), kShown); ++k) text += cat(" ", ids[k]);
    text += cat(ids.size() > kShown ? " ..." : "", " (", ids.size(), ")\n");
  }
  return text;
}

std::string dry_run_json(const DryRun& run) {
  const nlohmann::ordered_json json = {
      {"rank", run.rank},
      {"world_size", run.world_size},
      {"device", run.device},
      {"global_batch", run.global_batch},
      {"steps_per_epoch", run.steps_per_epoch},
      {"parameter_bytes", run.parameter_bytes},
      {"optimizer_bytes", run.optimizer_bytes},
      {"bucket_bytes", run.bucket_bytes},
      {"peak_device_bytes", run.peak_device_bytes},
      {"step_ms", run.step_ms},
      {"sample_ids", run.sample_ids},
  };
  return json.dump(2) + "\n";
}

}  // namespace assay::trainer
