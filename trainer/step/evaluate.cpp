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
                             const config::RunConfig& config, const c10::Device& device) {
  const double start = monotonic_seconds();
  const EvalMode eval_mode(*state.model.module);
  const torch::NoGradGuard no_grad;
  const data::Sampler sampler(
      {.dataset_size = eval.size(), .micro_batch_size = config.batch_size, .shuffle = false});
  data::DataLoader loader(eval, sampler, {.num_workers = 0});
  const BatchMover mover(eval.spec(), device, weight_type(config));
  at::Tensor loss_sum =
      torch::zeros({}, torch::TensorOptions().dtype(torch::kFloat64).device(device));
  at::Tensor correct = torch::zeros({}, torch::TensorOptions().dtype(torch::kInt64).device(device));
  metrics::EvalRecord record;
  loader.start({});
  while (record.samples < eval.size()) {
    const data::Batch batch = loader.next();
    const DeviceBatch moved = mover.move(batch);
    const AutocastGuard autocast(device, autocast_type(config));
    const at::Tensor logits = state.model.forward(moved.features);
    const at::Tensor flat = logits.reshape({-1, logits.size(-1)});
    const at::Tensor targets = moved.targets.reshape({-1});
    loss_sum +=
        models::cross_entropy_sum(flat, targets, /*label_smoothing=*/0.0).to(torch::kFloat64);
    correct += models::correct_count(flat, targets);
    record.samples += static_cast<int64_t>(batch.ids.size());
    record.targets += batch.valid_targets;
    fault_point("train.eval");
  }
  const auto targets = static_cast<double>(record.targets);
  record.step = state.counters.step;
  record.loss = loss_sum.item<double>() / targets;
  record.accuracy = static_cast<double>(correct.item<int64_t>()) / targets;
  record.time_ms = (monotonic_seconds() - start) * 1e3;
  return record;
}

}  // namespace assay::step
