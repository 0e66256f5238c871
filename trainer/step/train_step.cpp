#include "trainer/step/train_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <torch/torch.h>

#include "base/error.h"
#include "base/fault_points.h"
#include "models/losses.h"
#include "trainer/metrics/ids_ledger.h"
#include "trainer/step/autocast.h"
#include "trainer/step/device.h"

namespace assay::step {
namespace {

std::vector<at::Tensor> gradients(const TrainState& state) {
  std::vector<at::Tensor> list;
  list.reserve(state.parameters.size());
  for (const NamedTensor& parameter : state.parameters) list.push_back(parameter.tensor.grad());
  return list;
}

// Host copy that does not wait for the device: page-locked memory with CUDA.
at::Tensor start_host_copy(const at::Tensor& source) {
  if (!source.is_cuda()) return source;
  const at::Tensor host = torch::empty(
      source.sizes(), torch::TensorOptions().dtype(source.scalar_type()).pinned_memory(true));
  host.copy_(source, /*non_blocking=*/true);
  return host;
}

}  // namespace

TrainStep::TrainStep(const config::RunConfig& config, const data::SampleSpec& spec,
                     const data::Sampler& sampler, const c10::Device& device)
    : config_(config),
      sampler_(sampler),
      device_(device),
      mover_(spec, device, weight_type(config)),
      slots_(device),
      tokens_per_sample_(spec.feature_type == data::FeatureType::kInt64 ? spec.targets_per_sample
                                                                        : 0) {}

PendingStep TrainStep::run(TrainState& state, data::DataLoader& loader, StepClock& clock) {
  PendingStep pending;
  clock.begin_step();
  reset_peak_memory(device_);
  at::_foreach_zero_(gradients(state));
  clock.mark(Phase::kOptimizer);
  at::Tensor loss_sum;  // over the step's valid targets, float64
  double valid_targets = 0;
  data::StepWindow window;
  bool is_last = false;
  while (!is_last) {
    data::Batch batch = loader.next();
    clock.mark(Phase::kDataWait);
    fault_point("train.first_batch");
    pending.ids.insert(pending.ids.end(), batch.ids.begin(), batch.ids.end());
    valid_targets = static_cast<double>(batch.step_valid_targets);
    window = batch.window;
    is_last = batch.micro_step + 1 >= batch.num_micro_steps;
    const DeviceBatch moved = mover_.move(batch);
    slots_.keep(std::move(batch));
    clock.mark(Phase::kH2d);
    const at::Tensor micro_loss = forward_backward(state, moved, valid_targets, clock);
    loss_sum = loss_sum.defined() ? loss_sum + micro_loss : micro_loss;
  }
  const double learning_rate = learning_rate_at(state.schedule, state.counters.updates);
  pending.numbers =
      start_host_copy(clip_and_update(state, loss_sum / valid_targets, learning_rate));
  pending.record.learning_rate = learning_rate;
  advance(state, window, pending);
  fault_point("train.optimizer");
  clock.mark(Phase::kOptimizer);
  pending.marks = clock.end_step();
  return pending;
}

at::Tensor TrainStep::forward_backward(TrainState& state, const DeviceBatch& moved,
                                       double valid_targets, StepClock& clock) const {
  at::Tensor loss_sum;
  {
    const AutocastGuard autocast(device_, autocast_type(config_));
    const at::Tensor logits = state.model.forward(moved.features);  // [B, K] or [B, T, V]
    loss_sum =
        models::cross_entropy_sum(logits.reshape({-1, logits.size(-1)}),
                                  moved.targets.reshape({-1}), config_.label_smoothing_factor);
  }
  if (is_fault_due("defect.nan_loss")) {
    loss_sum = loss_sum * std::numeric_limits<double>::quiet_NaN();
  }
  fault_point("train.forward");
  clock.mark(Phase::kForward);
  (loss_sum / valid_targets).backward();
  fault_point("train.backward");
  clock.mark(Phase::kBackward);
  return loss_sum.detach().to(torch::kFloat64);
}

at::Tensor TrainStep::clip_and_update(TrainState& state, const at::Tensor& loss,
                                      double learning_rate) const {
  const torch::NoGradGuard no_grad;
  const std::vector<at::Tensor> grads = gradients(state);
  if (is_fault_due("defect.scale_gradient")) at::_foreach_mul_(grads, 1.001);
  const at::Tensor norms = torch::stack(at::_foreach_norm(grads, 2));
  const at::Tensor grad_norm = norms.norm();
  const at::Tensor found_nonfinite =
      (loss.isfinite().logical_and(grad_norm.isfinite())).logical_not().to(torch::kFloat32);
  if (config_.optimizer.max_grad_norm > 0.0) {
    // Pascanu et al. 2013, alg. 1; the 1e-6 is that of torch.nn.utils.clip_grad_norm_.
    const at::Tensor factor = (config_.optimizer.max_grad_norm / (grad_norm + 1e-6)).clamp_max(1.0);
    at::_foreach_mul_(grads, factor);
  }
  state.optimizer->step(learning_rate, found_nonfinite.reshape({1}));
  const auto number = [](const at::Tensor& value) {
    return value.to(torch::kFloat64).reshape({-1});
  };
  return torch::cat({number(loss), number(grad_norm), number(found_nonfinite), number(norms)});
}

void TrainStep::advance(TrainState& state, const data::StepWindow& window,
                        PendingStep& pending) const {
  Counters& counters = state.counters;
  ++counters.step;
  ++counters.updates;
  counters.samples_seen += window.count;
  counters.tokens_seen += window.count * tokens_per_sample_;
  state.position = window.next;
  state.last_learning_rate = pending.record.learning_rate;
  metrics::StepRecord& record = pending.record;
  record.step = counters.step;
  record.updates = counters.updates;
  record.skipped = counters.skipped;
  record.samples_seen = counters.samples_seen;
  record.tokens_seen = counters.tokens_seen;
  record.epoch =
      static_cast<double>(window.epoch) + static_cast<double>(window.first + window.count) /
                                              static_cast<double>(sampler_.config().dataset_size);
  // The allocator counts on the host as work is enqueued, so this is the step's own peak.
  const DeviceMemory memory = device_memory(device_);
  record.memory.allocated_bytes = memory.allocated_bytes;
  record.memory.peak_allocated_bytes = memory.peak_allocated_bytes;
  record.memory.reserved_bytes = memory.reserved_bytes;
  pending.epoch = window.epoch;
  record.ids_digest = metrics::ids_digest(pending.ids);
}

ResolvedStep TrainStep::resolve(const TrainState& state, PendingStep& pending) const {
  const StepTimes times = read_times(pending.marks);  // waits for the device
  const double* numbers = pending.numbers.const_data_ptr<double>();
  ResolvedStep resolved;
  resolved.record = std::move(pending.record);
  resolved.is_nonfinite = numbers[2] != 0.0;
  metrics::StepRecord& record = resolved.record;
  record.loss = numbers[0];
  record.grad_norm = numbers[1];
  record.time_ms = times.time_ms;
  record.phases = times.phases;
  if (resolved.is_nonfinite) {
    --record.updates;  // counted when it was enqueued
    ++record.skipped;
    const double* norms = numbers + 3;
    const auto bad = std::find_if(state.parameters.begin(), state.parameters.end(),
                                  [&](const NamedTensor&) { return !std::isfinite(*norms++); });
    if (bad != state.parameters.end()) resolved.nonfinite_gradient = bad->name;
  }
  return resolved;
}

}  // namespace assay::step
