// One optimizer step, readable top to bottom: micro-batches forward and backward, clip, update.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/loader.h"
#include "trainer/config/run_config.h"
#include "trainer/metrics/step_record.h"
#include "trainer/step/device_batch.h"
#include "trainer/step/ranks.h"
#include "trainer/step/step_clock.h"
#include "trainer/step/step_sums.h"
#include "trainer/step/train_state.h"

namespace assay::step {

// What a step leaves behind before its numbers have arrived from the device.
struct PendingStep {
  metrics::StepRecord record;  // all but loss, grad_norm and times
  // Host (pinned with CUDA), float64: grad_norm, is_nonfinite, the ranks' sums, then each
  // parameter's norm.
  at::Tensor numbers;
  SumsShape sums;
  double valid_targets = 0;  // of the step, over all ranks
  data::StepWindow window;
  StepMarks marks;
  int64_t epoch = 0;         // of the step's samples
  std::vector<int64_t> ids;  // this rank's samples, in order
};

struct ResolvedStep {
  metrics::StepRecord record;
  bool is_nonfinite = false;       // the update was not applied
  std::string nonfinite_gradient;  // name of the first parameter with one; empty if none
  int64_t nonfinite_rank = -1;     // whose micro-batch has the first non-finite loss; -1: none
  int stop_signal = 0;             // asked of any rank before this step's update
};

// Main thread only. Borrows configuration, sampler and ranks.
class TrainStep {
 public:
  TrainStep(const config::RunConfig& config, const data::SampleSpec& spec,
            const data::Sampler& sampler, const c10::Device& device, const Ranks& ranks);

  // Takes this rank's micro-batches of the next step and applies one update to `state`. Loss and
  // gradient are sums over valid targets, over all micro-batches and ranks, divided once by the
  // step's global count; ranks reduce during the last backward only. `stop_signal`: what this rank
  // was asked, to be told to the others. The host waits for a CUDA
  // device only where a batch slot is freed: for the copies of the micro-batch before. A non-finite
  // loss or gradient leaves weights and optimizer as they were; whoever resolves the step must then
  // stop, since counters and schedule have moved on.
  PendingStep run(TrainState& state, data::DataLoader& loader, StepClock& clock,
                  int stop_signal = 0);

  // Waits for the step's numbers and fills in its record.
  ResolvedStep resolve(const TrainState& state, PendingStep& pending) const;

 private:
  // Sum of the micro-batch's losses, not yet backward.
  at::Tensor forward(TrainState& state, const DeviceBatch& moved) const;
  void backward(const at::Tensor& loss, bool is_last, StepClock& clock) const;
  at::Tensor clip_and_update(TrainState& state, const at::Tensor& sums, double learning_rate) const;
  std::string digest_of_ids(const PendingStep& pending, const ReadSums& sums) const;
  void advance(TrainState& state, const data::StepWindow& window, PendingStep& pending) const;

  const config::RunConfig& config_;
  const data::Sampler& sampler_;
  c10::Device device_;
  Ranks ranks_;
  BatchMover mover_;
  SlotKeeper slots_;
  int64_t tokens_per_sample_;  // 0 for images
};

}  // namespace assay::step
