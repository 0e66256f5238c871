#include "trainer/run_setup.h"

#include <algorithm>
#include <cmath>

#include <torch/version.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "base/version.h"
#include "data/loader.h"
#include "models/model.h"
#include "platform/environment.h"
#include "trainer/config/config_io.h"
#include "trainer/launch/address.h"

namespace assay::trainer {

std::map<std::string, std::string> versions() {
  return {{"assay", version_string()},          {"commit", git_commit()},
          {"libtorch", TORCH_VERSION},          {"cuda_build", build_cuda_version()},
          {"nccl_build", build_nccl_version()}, {"compiler", build_compiler()}};
}

std::string build_text() {
  return cat("assay ", version_string(), " commit ", git_commit(), " LibTorch ", TORCH_VERSION);
}

data::OpenedData open_run_data(const config::RunConfig& config) {
  const models::ModelShape shape = models::model_shape(config.model);
  const bool is_tokens = shape.task == models::Task::kLanguageModel;
  data::DataRequest request;
  request.name = !config.data.name.empty() ? config.data.name : is_tokens ? "text" : "digits";
  request.directory = config.data.directory;
  request.sequence_length = config.data.sequence_length.value_or(shape.context_length);
  request.max_train_samples = config.data.max_train_samples.value_or(0);
  request.max_eval_samples = config.data.max_eval_samples.value_or(0);
  request.synthetic_samples = config.data.synthetic_samples.value_or(1024);
  request.image_shape = shape.image_shape;
  request.is_tokens = is_tokens;
  request.num_classes = shape.num_classes;
  request.class_limit = shape.num_classes;
  request.token_bits = config.data.token_bits;
  request.augment = config.data.augment;
  request.jpeg_scale =
      config.data.jpeg_scale == "auto" ? data::JpegScale::kAuto : data::JpegScale::kExact;
  data::OpenedData opened = data::open_data(request);
  const data::SampleSpec& spec = opened.train->spec();
  const bool has_tokens = spec.feature_type == data::FeatureType::kInt64;
  if (has_tokens != is_tokens || spec.num_classes > shape.num_classes ||
      (!is_tokens && spec.feature_shape != shape.image_shape)) {
    throw ConfigError(cat("data set ", quoted(opened.name), " does not fit model ",
                          quoted(config.model.name), ": it has ", spec.num_classes,
                          has_tokens ? " token ids" : " classes", ", the model ", shape.num_classes,
                          ". Fix: choose --dataset or --model to match"));
  }
  return opened;
}

data::SamplerConfig sampler_config(const config::RunConfig& config, const data::OpenedData& data,
                                   const distributed::World& world) {
  return {.dataset_size = data.train->size(),
          .micro_batch_size = config.batch_size,
          .grad_accum_steps = config.gradient_accumulation_steps,
          .world_size = world.size(),
          .rank = world.rank(),
          .seed = config.seed,
          .shuffle = config.data.shuffle,
          .drop_last = config.data.drop_last};
}

int64_t target_steps(const config::RunConfig& config, const data::Sampler& sampler) {
  if (config.max_steps) return *config.max_steps;
  return static_cast<int64_t>(
      std::ceil(config.num_train_epochs * static_cast<double>(sampler.steps_per_epoch())));
}

int64_t worker_count(const config::RunConfig& config, const c10::Device& device,
                     const launch::RankEnv& env) {
  if (config.data.num_workers) return *config.data.num_workers;
  const int64_t local_ranks = std::max<int64_t>(env.local_world_size, 1);
  return data::default_num_workers(platform::available_cpus(), device.is_cuda() ? local_ranks : 0,
                                   local_ranks);
}

distributed::RankRecord rank_record(const launch::RankEnv& env, const config::RunConfig& config) {
  distributed::RankRecord record;
  record.rank = env.rank;
  record.world_size = env.world_size;
  record.local_rank = env.local_rank;
  record.host = launch::host_name();
  record.host_identity = launch::host_identity();
  record.pid = getpid();
  record.build = build_text();
  record.config_json = config::config_to_json(config);
  if (distributed::needs_world(env)) {
    record.address = launch::local_address_towards(launch::without_brackets(env.master_addr),
                                                   std::max<int64_t>(env.master_port, 1));
  }
  return record;
}

}  // namespace assay::trainer
