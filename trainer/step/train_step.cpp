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

at::Tensor zero_loss(const TrainState& state) {
  std::vector<at::Tensor> parameters;
  for (const NamedTensor& parameter : state.parameters) parameters.push_back(parameter.tensor);
  return distributed::zero_loss(parameters);
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
                     const data::Sampler& sampler, const c10::Device& device, const Ranks& ranks)
    : config_(config),
      sampler_(sampler),
      device_(device),
      ranks_(ranks),
      mover_(spec, device, weight_type(config)),
      slots_(device),
      tokens_per_sample_(spec.feature_type == data::FeatureType::kInt64 ? spec.targets_per_sample
                                                                        : 0) {}

PendingStep TrainStep::run(TrainState& state, data::DataLoader& loader, StepClock& clock,
                           int stop_signal) {
  PendingStep pending;
  clock.begin_step();
  reset_peak_memory(device_);
  at::_foreach_zero_(gradients(state));
  clock.mark(Phase::kOptimizer);
  std::vector<at::Tensor> losses;  // sums over a micro-batch's valid targets, float64
  at::Tensor sums;
  bool is_last = false;
  while (!is_last) {
    ranks_.page.set_phase(launch::RankPhase::kDataWait);
    data::Batch batch = loader.next();
    clock.mark(Phase::kDataWait);
    fault_point("train.first_batch");
    pending.ids.insert(pending.ids.end(), batch.ids.begin(), batch.ids.end());
    pending.valid_targets = static_cast<double>(batch.step_valid_targets);
    pending.window = batch.window;
    pending.sums = {batch.num_micro_steps, ranks_.world.size()};
    is_last = batch.micro_step + 1 >= batch.num_micro_steps;
    const bool is_empty = batch.ids.empty();  // the epoch's end leaves this rank without samples
    DeviceBatch moved;
    if (!is_empty) moved = mover_.move(batch);
    slots_.keep(std::move(batch));
    clock.mark(Phase::kH2d);
    ranks_.page.set_phase(launch::RankPhase::kForward);
    const at::Tensor loss = is_empty ? zero_loss(state) : forward(state, moved);
    losses.push_back(loss.detach().to(torch::kFloat64));
    fault_point("train.forward");
    clock.mark(Phase::kForward);
    ranks_.page.set_phase(launch::RankPhase::kBackward);
    std::function<void()> finish_sums;
    if (is_last) {
      sums = make_sums(pending.sums, ranks_.world.rank(), losses, stop_signal, ids_sum(pending.ids),
                       device_);
      finish_sums = ranks_.world.start_all_reduce(sums);
    }
    backward(loss / pending.valid_targets, is_last, clock);
    if (is_last) {
      finish_sums();
      if (ranks_.reducer != nullptr) clock.mark(Phase::kComm);
    }
  }
  const double learning_rate = learning_rate_at(state.schedule, state.counters.updates);
  ranks_.page.set_phase(launch::RankPhase::kOptimizer);
  pending.numbers = start_host_copy(clip_and_update(state, sums, learning_rate));
  pending.record.learning_rate = learning_rate;
  advance(state, pending.window, pending);
  fault_point("train.optimizer");
  clock.mark(Phase::kOptimizer);
  pending.marks = clock.end_step();
  return pending;
}

at::Tensor TrainStep::forward(TrainState& state, const DeviceBatch& moved) const {
  const AutocastGuard autocast(device_, autocast_type(config_));
  const at::Tensor logits = state.model.forward(moved.features);  // [B, K] or [B, T, V]
  at::Tensor loss_sum =
      models::cross_entropy_sum(logits.reshape({-1, logits.size(-1)}), moved.targets.reshape({-1}),
                                config_.label_smoothing_factor);
  if (is_fault_due("defect.nan_loss")) {
    loss_sum = loss_sum * std::numeric_limits<double>::quiet_NaN();
  }
  return loss_sum;
}

void TrainStep::backward(const at::Tensor& loss, bool is_last, StepClock& clock) const {
  const bool reduces = is_last && ranks_.reducer != nullptr;
  if (reduces) {
    ranks_.reducer->prepare([&](size_t index, size_t count) {
      if (index == 0) clock.mark_comm_start();
      if (index + 1 < count) return;
      // Every gradient is there: from here on this rank only waits for the sums.
      clock.mark(Phase::kBackward);
      ranks_.page.set_phase(launch::RankPhase::kComm);
    });
  }
  loss.backward();
  fault_point("train.backward");
  if (reduces) {
    ranks_.reducer->finish();
    clock.mark(Phase::kComm);
  } else {
    clock.mark(Phase::kBackward);
  }
}

at::Tensor TrainStep::clip_and_update(TrainState& state, const at::Tensor& sums,
                                      double learning_rate) const {
  const torch::NoGradGuard no_grad;
  const std::vector<at::Tensor> grads = gradients(state);
  if (is_fault_due("defect.scale_gradient")) at::_foreach_mul_(grads, 1.001);
  const at::Tensor norms = torch::stack(at::_foreach_norm(grads, 2));
  const at::Tensor grad_norm = norms.norm();
  const at::Tensor found_nonfinite =
      (sums.sum().isfinite().logical_and(grad_norm.isfinite())).logical_not().to(torch::kFloat32);
  if (config_.optimizer.max_grad_norm > 0.0) {
    // Pascanu et al. 2013, alg. 1; the 1e-6 is that of torch.nn.utils.clip_grad_norm_.
    const at::Tensor factor = (config_.optimizer.max_grad_norm / (grad_norm + 1e-6)).clamp_max(1.0);
    at::_foreach_mul_(grads, factor);
  }
  state.optimizer->step(learning_rate, found_nonfinite.reshape({1}));
  const auto number = [](const at::Tensor& value) {
    return value.to(torch::kFloat64).reshape({-1});
  };
  return torch::cat({number(grad_norm), number(found_nonfinite), sums, number(norms)});
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
}

ResolvedStep TrainStep::resolve(const TrainState& state, PendingStep& pending) const {
  const StepTimes times = read_times(pending.marks);  // waits for the device
  const double* numbers = pending.numbers.const_data_ptr<double>();
  const ReadSums sums = read_sums(pending.sums, numbers + 2);
  ResolvedStep resolved;
  resolved.record = std::move(pending.record);
  resolved.is_nonfinite = numbers[1] != 0.0;
  resolved.nonfinite_rank = sums.nonfinite_rank;
  resolved.stop_signal = sums.stop_signal;
  metrics::StepRecord& record = resolved.record;
  record.loss = sums.loss_sum / pending.valid_targets;
  record.grad_norm = numbers[0];
  record.time_ms = times.time_ms;
  record.phases = times.phases;
  record.comm_total_ms = times.comm_total_ms;
  record.ids_digest = digest_of_ids(pending, sums);
  if (resolved.is_nonfinite) {
    --record.updates;  // counted when it was enqueued
    ++record.skipped;
    const double* norms = numbers + 2 + pending.sums.size();
    const auto bad = std::find_if(state.parameters.begin(), state.parameters.end(),
                                  [&](const NamedTensor&) { return !std::isfinite(*norms++); });
    if (bad != state.parameters.end()) resolved.nonfinite_gradient = bad->name;
  }
  return resolved;
}

std::string TrainStep::digest_of_ids(const PendingStep& pending, const ReadSums& sums) const {
  if (ranks_.world.size() == 1) return metrics::ids_digest(pending.ids);
  // The window's ids in the epoch's order are what one rank would have used. If the ranks together
  // used others, the digest must tell.
  const std::vector<int64_t> ids = sampler_.window_ids(pending.window);
  if (ids_sum(ids) == sums.sum_of_ids) return metrics::ids_digest(ids);
  const int64_t used = static_cast<int64_t>(sums.sum_of_ids);
  return metrics::ids_digest(std::vector<int64_t>{-1, used});
}

}  // namespace assay::step
