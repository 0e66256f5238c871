#include "trainer/step/evaluate.h"

#include <torch/torch.h>

#include "base/clock.h"
#include "base/fault_points.h"
#include "data/loader.h"
#include "models/losses.h"
#include "trainer/step/autocast.h"
#include "trainer/step/device_batch.h"

namespace assay::step {
namespace {

// Switches a module to evaluation and back to what it was.
class EvalMode {
 public:
  explicit EvalMode(torch::nn::Module& module)
      : module_(module), was_training_(module.is_training()) {
    module_.eval();
  }
  ~EvalMode() { module_.train(was_training_); }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  torch::nn::Module& module_;
  bool was_training_;
};

}  // namespace

metrics::EvalRecord evaluate(const TrainState& state, const data::Dataset& eval,
                             const config::RunConfig& config, const c10::Device& device,
                             distributed::World& world) {
  const double start = monotonic_seconds();
  const EvalMode eval_mode(*state.model.module);
  const torch::NoGradGuard no_grad;
  broadcast_buffers(state, world);
  const data::Sampler sampler({.dataset_size = eval.size(),
                               .micro_batch_size = config.batch_size,
                               .world_size = world.size(),
                               .rank = world.rank(),
                               .shuffle = false});
  data::DataLoader loader(eval, sampler, {.num_workers = 0});
  const BatchMover mover(eval.spec(), device, weight_type(config));
  const auto numbers = torch::TensorOptions().dtype(torch::kFloat64).device(device);
  // One place for each micro-batch of all ranks, then correct predictions, samples and targets.
  const int64_t num_batches = sampler.steps_per_epoch() * world.size();
  const at::Tensor sums = torch::zeros({num_batches + 3}, numbers);
  int64_t samples = 0;
  int64_t targets = 0;
  loader.start({});
  for (int64_t window = 0; window < sampler.steps_per_epoch(); ++window) {
    const data::Batch batch = loader.next();
    if (batch.ids.empty()) continue;  // the last window has none for this rank
    const DeviceBatch moved = mover.move(batch);
    const AutocastGuard autocast(device, autocast_type(config));
    const at::Tensor logits = state.model.forward(moved.features);
    const at::Tensor flat = logits.reshape({-1, logits.size(-1)});
    const at::Tensor expected = moved.targets.reshape({-1});
    sums[window * world.size() + world.rank()] =
        models::cross_entropy_sum(flat, expected, /*label_smoothing=*/0.0).to(torch::kFloat64);
    sums[num_batches] += models::correct_count(flat, expected);
    samples += static_cast<int64_t>(batch.ids.size());
    targets += batch.valid_targets;
    fault_point("train.eval");
  }
  sums.narrow(0, num_batches + 1, 2)
      .copy_(torch::tensor({static_cast<double>(samples), static_cast<double>(targets)},
                           torch::kFloat64));
  world.all_reduce(sums);
  const at::Tensor host = sums.cpu();
  const double* read = host.const_data_ptr<double>();
  double loss_sum = 0;
  for (int64_t i = 0; i < num_batches; ++i) loss_sum += read[i];
  metrics::EvalRecord record;
  record.step = state.counters.step;
  record.samples = static_cast<int64_t>(read[num_batches + 1]);
  record.targets = static_cast<int64_t>(read[num_batches + 2]);
  record.loss = loss_sum / static_cast<double>(record.targets);
  record.accuracy = read[num_batches] / static_cast<double>(record.targets);
  record.time_ms = (monotonic_seconds() - start) * 1e3;
  return record;
}

}  // namespace assay::step
