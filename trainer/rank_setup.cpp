#include "trainer/rank_setup.h"

#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "base/error.h"
#include "base/text.h"
#include "models/layers.h"

namespace assay::trainer {

std::unique_ptr<distributed::GradientReducer> make_reducer(distributed::World& world,
                                                           const config::RunConfig& config,
                                                           const step::TrainState& state) {
  if (!world.group()) return nullptr;
  std::vector<std::string> names;
  std::vector<at::Tensor> parameters;
  for (const step::NamedTensor& entry : state.parameters) {
    names.push_back(entry.name);
    parameters.push_back(entry.tensor);
  }
  return std::make_unique<distributed::GradientReducer>(
      world, names, parameters,
      distributed::ReducerSettings{.bucket_mb = config.ddp.bucket_mb,
                                   .first_bucket_mb = config.ddp.first_bucket_mb,
                                   .is_bf16 = config.ddp.reduce_dtype == "bf16",
                                   .is_static_graph = config.ddp.static_graph});
}

void share_batch_norms(distributed::World& world, const config::RunConfig& config,
                       const data::Sampler& sampler, const step::TrainState& state) {
  if (!config.ddp.sync_batch_norm || world.size() == 1) return;
  const int64_t samples = sampler.config().dataset_size;
  const int64_t global_batch =
      config.batch_size * config.gradient_accumulation_steps * world.size();
  if (!config.data.drop_last && samples % global_batch != 0) {
    throw ConfigError(cat("ddp.sync_batch_norm is true, but the last step of an epoch has ",
                          samples % global_batch, " of ", global_batch,
                          " samples, so that not every rank has images for every mean. Fix: "
                          "--drop_last, or --max_train_samples with a multiple of ",
                          global_batch));
  }
  const int64_t count = models::share_batch_norms(
      *state.model.module,
      {.rank = world.rank(),
       .size = world.size(),
       .all_reduce = [&world](const at::Tensor& tensor) { world.all_reduce(tensor); }});
  if (count > 0) return;
  throw ConfigError(cat("ddp.sync_batch_norm is true, but model.name ", quoted(config.model.name),
                        " has no batch norm. Fix: leave it out"));
}

}  // namespace assay::trainer
