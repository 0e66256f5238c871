// Evaluation: mean loss and accuracy over every held-out sample, each exactly once.
#pragma once

#include "data/dataset.h"
#include "trainer/config/run_config.h"
#include "trainer/metrics/step_record.h"
#include "trainer/step/train_state.h"

namespace assay::step {

// Dropout off, no gradients, same precision as training; draws no random numbers and changes
// nothing in the state. The record's epoch is the caller's to fill in. Synchronises at the end.
// `eval` must not be empty.
metrics::EvalRecord evaluate(const TrainState& state, const data::Dataset& eval,
                             const config::RunConfig& config, const c10::Device& device);

}  // namespace assay::step
