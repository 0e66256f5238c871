// From a configuration to what a run works with: its data, their order, its length.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <c10/core/Device.h>

#include "data/dataset.h"
#include "data/sampler.h"
#include "trainer/config/run_config.h"
#include "trainer/distributed/world.h"
#include "trainer/launch/rank_env.h"

namespace assay::trainer {

// Program, commit, LibTorch, CUDA, NCCL, compiler: for the record.
std::map<std::string, std::string> versions();

// The same in one line, for ranks to compare.
std::string build_text();

// Opens the run's data. Throws DataError, and ConfigError if data and model do not fit.
data::OpenedData open_run_data(const config::RunConfig& config);

data::SamplerConfig sampler_config(const config::RunConfig& config, const data::OpenedData& data,
                                   const distributed::World& world);

// max_steps, or that many epochs in steps.
int64_t target_steps(const config::RunConfig& config, const data::Sampler& sampler);

// Loader threads of this rank: its share of the machine's.
int64_t worker_count(const config::RunConfig& config, const c10::Device& device,
                     const launch::RankEnv& env);

// What this rank tells the others about itself.
distributed::RankRecord rank_record(const launch::RankEnv& env, const config::RunConfig& config);

}  // namespace assay::trainer
