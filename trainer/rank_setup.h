// What several ranks need before they can train one model together.
#pragma once

#include <memory>

#include "data/sampler.h"
#include "trainer/config/run_config.h"
#include "trainer/distributed/gradient_reducer.h"
#include "trainer/distributed/world.h"
#include "trainer/step/train_state.h"

namespace assay::trainer {

// Null where there is one rank that nobody started as one of several.
std::unique_ptr<distributed::GradientReducer> make_reducer(distributed::World& world,
                                                           const config::RunConfig& config,
                                                           const step::TrainState& state);

// With ddp.sync_batch_norm, from now on the model's batch norms take their statistics over all
// ranks' images; `world` must outlive the model. Throws ConfigError if the model has none, or if
// an epoch ends with a step in which a rank has no images: it could not take part.
void share_batch_norms(distributed::World& world, const config::RunConfig& config,
                       const data::Sampler& sampler, const step::TrainState& state);

}  // namespace assay::trainer
