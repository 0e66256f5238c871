// Everything that a resume needs, in one place: what is not here does not survive.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "checkpoints/reader.h"
#include "checkpoints/state_digest.h"
#include "data/sampler.h"
#include "models/model.h"
#include "trainer/config/run_config.h"
#include "trainer/step/lr_schedule.h"
#include "trainer/step/optimizer.h"
#include "trainer/step/ranks.h"

namespace assay::step {

struct Counters {
  int64_t step = 0;     // update attempts
  int64_t updates = 0;  // applied ones
  int64_t skipped = 0;
  int64_t samples_seen = 0;
  int64_t tokens_seen = 0;
};

// Main thread only. The generators are torch's default ones: the CPU's and the device's.
struct TrainState {
  models::Model model;
  std::vector<NamedTensor> parameters;  // trained, in registration order
  std::unique_ptr<Optimizer> optimizer;
  LrSchedule schedule;
  Counters counters;
  data::DataPosition position;
  double last_learning_rate = 0;
  double last_loss = 0;
  std::optional<checkpoints::BestEvaluation> best;
  std::string run_id;
};

// Builds the state of step 0: seeds the generators, makes the model on the CPU (so that every
// device starts from the same weights), moves it, reads the weights of model.init_from if there is
// one, gives all ranks rank 0's weights, and makes the optimizer. After that each rank's generators
// are its own. Collective.
TrainState make_initial_state(const config::RunConfig& config, const c10::Device& device,
                              int64_t total_steps, distributed::World& world);

// Names and tensors of the weights, of the buffers where batch norms are shared, and of the
// optimizer's state where every rank has all of it: what must be equal on all ranks.
std::vector<NamedTensor> replicated_tensors(const TrainState& state,
                                            const config::RunConfig& config);

// Rank 0's buffers (running statistics of batch norm) for all: what is evaluated and saved.
// Collective.
void broadcast_buffers(const TrainState& state, distributed::World& world);

// A copy of the state in host memory, ready to be written. Owns the tensors its views point to.
struct HostState {
  std::vector<at::Tensor> tensors;
  checkpoints::StateParts parts;
};
// Synchronises with the device. On the CPU the views point at the live tensors: write before the
// next step changes them. Collective; only rank 0's result holds tensors.
HostState capture(const TrainState& state, const config::RunConfig& config,
                  const c10::Device& device, distributed::World& world);

// What a resume starts from, as far as every rank must know it.
struct ResumePoint {
  std::string path;  // the checkpoint's folder, as rank 0 sees it
  checkpoints::TrainerState trainer;
  std::vector<checkpoints::RankState> ranks;  // of the run that saved, sorted by rank
};

// Puts a verified checkpoint's state into a freshly built one. Rank 0 reads (`checkpoint` is null
// on the others), so only its host must see the files. Every tensor must be there with its shape
// and type, and nothing else: throws CheckpointError naming the first that is not, on every rank.
// A rank that the saving run did not have draws from a stream of its own. Collective.
void restore(TrainState& state, const ResumePoint& point, const checkpoints::Checkpoint* checkpoint,
             const config::RunConfig& config, const c10::Device& device, distributed::World& world);

// Data type of --fp64, or float32 (bf16 is autocast over float32 weights).
c10::ScalarType weight_type(const config::RunConfig& config);
c10::ScalarType autocast_type(const config::RunConfig& config);

}  // namespace assay::step
