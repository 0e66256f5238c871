// Evaluation: mean loss and accuracy over every held-out sample, each exactly once.
#pragma once

#include "data/dataset.h"
#include "trainer/config/run_config.h"
#include "trainer/distributed/world.h"
#include "trainer/metrics/step_record.h"
#include "trainer/step/train_state.h"

namespace assay::step {

// Dropout off, no gradients, same precision as training; draws no random numbers and changes
// nothing in the state. The record's epoch is the caller's to fill in. Synchronises at the end.
// `eval` must not be empty.
// The ranks share the samples and add up what they found, in an order that does not depend on how
// many there are: the same bits on any number of ranks. Collective.
metrics::EvalRecord evaluate(const TrainState& state, const data::Dataset& eval,
                             const config::RunConfig& config, const c10::Device& device,
                             distributed::World& world);

}  // namespace assay::step
