#include "trainer/step/train_state.h"

#include <cstring>
#include <map>

#include <torch/torch.h>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/text.h"
#include "data/mix64.h"
#include "trainer/config/config_io.h"
#include "trainer/step/device.h"
#include "trainer/step/initial_weights.h"
#include "trainer/step/sharded_optimizer.h"

namespace assay::step {
namespace {

// Rank 0 may read a large checkpoint from a slow disk while the others wait.
constexpr double kLoadSeconds = 3600;

std::string dtype_name(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Double:
      return "F64";
    case c10::ScalarType::Float:
      return "F32";
    case c10::ScalarType::Half:
      return "F16";
    case c10::ScalarType::BFloat16:
      return "BF16";
    case c10::ScalarType::Long:
      return "I64";
    case c10::ScalarType::Int:
      return "I32";
    case c10::ScalarType::Short:
      return "I16";
    case c10::ScalarType::Char:
      return "I8";
    case c10::ScalarType::Byte:
      return "U8";
    case c10::ScalarType::Bool:
      return "BOOL";
    default:
      throw InternalError(cat("no safetensors name for ", c10::toString(type)));
  }
}

std::vector<NamedTensor> model_tensors(const models::Model& model) {
  std::vector<NamedTensor> list;
  for (const auto& entry : model.module->named_parameters())
    list.push_back({entry.key(), entry.value()});
  for (const auto& entry : model.module->named_buffers())
    list.push_back({entry.key(), entry.value()});
  return list;
}

std::vector<checkpoints::TensorView> host_views(const std::vector<NamedTensor>& source,
                                                std::vector<at::Tensor>& owners) {
  std::vector<checkpoints::TensorView> views;
  for (const NamedTensor& entry : source) {
    const at::Tensor host = entry.tensor.detach().to(torch::kCPU).contiguous();
    owners.push_back(host);
    views.push_back({entry.name, dtype_name(host.scalar_type()), host.sizes().vec(),
                     host.const_data_ptr(), host.nbytes()});
  }
  return views;
}

[[noreturn]] void refuse(const checkpoints::SafetensorsFile& file, const std::string& problem) {
  throw CheckpointError(
      cat(problem, " (", file.path(), "). Fix: resume with the model and optimizer that wrote it"));
}

void load_tensors(const std::vector<NamedTensor>& targets,
                  const checkpoints::SafetensorsFile& file) {
  std::map<std::string, bool> wanted;
  for (const NamedTensor& target : targets) {
    wanted[target.name] = true;
    const checkpoints::TensorView* view = file.find(target.name);
    if (view == nullptr) refuse(file, cat("tensor ", quoted(target.name), " is missing"));
    if (view->dtype != dtype_name(target.tensor.scalar_type()) ||
        view->shape != target.tensor.sizes().vec()) {
      refuse(file,
             cat("tensor ", quoted(target.name), " is ", view->dtype, " ",
                 c10::str(at::IntArrayRef(view->shape)), ", the run needs ",
                 dtype_name(target.tensor.scalar_type()), " ", c10::str(target.tensor.sizes())));
    }
    const at::Tensor stored = torch::empty(target.tensor.sizes(), target.tensor.scalar_type());
    if (view->byte_count > 0) std::memcpy(stored.mutable_data_ptr(), view->bytes, view->byte_count);
    target.tensor.copy_(stored);
  }
  for (const checkpoints::TensorView& view : file.tensors()) {
    if (!wanted.contains(view.name)) {
      refuse(file, cat("tensor ", quoted(view.name), " does not belong to this run"));
    }
  }
}

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& entries) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& entry : entries) tensors.push_back(entry.tensor);
  return tensors;
}

// Rank 0 keeps the run's own stream, so that one rank alone draws what it always drew.
void seed_rank(uint64_t seed, int64_t rank, const c10::Device& device) {
  if (rank == 0) return;
  const auto own = static_cast<uint64_t>(rank) * data::kMixIncrement;
  seed_generators(data::mix64(data::mix64(seed + data::kMixIncrement) ^ own), device);
}

void restore_rng(const ResumePoint& point, const config::RunConfig& config,
                 const c10::Device& device, int64_t rank) {
  if (is_fault_due("defect.skip_rng_restore")) return;
  for (const checkpoints::RankState& stored : point.ranks) {
    if (stored.rank != rank) continue;
    restore_cpu_rng(stored.cpu_rng_hex);
    restore_device_rng(device, stored.cuda_rng_hex);
    return;
  }
  // More ranks than before: a stream that no rank of the run has drawn from.
  const auto step = static_cast<uint64_t>(point.trainer.step);
  seed_generators(data::mix64(config.seed ^ data::mix64(step + data::kMixIncrement)), device);
  seed_rank(config.seed ^ step, rank, device);
}

checkpoints::TrainerState trainer_state(const TrainState& state, const config::RunConfig& config) {
  checkpoints::TrainerState trainer;
  trainer.step = state.counters.step;
  trainer.updates = state.counters.updates;
  trainer.skipped = state.counters.skipped;
  trainer.samples_seen = state.counters.samples_seen;
  trainer.tokens_seen = state.counters.tokens_seen;
  trainer.epoch = state.position.epoch;
  trainer.samples_in_epoch = state.position.samples_in_epoch;
  trainer.schedule_type = state.schedule.shape.type;
  trainer.schedule_total_steps = state.schedule.total_steps;
  trainer.last_learning_rate = state.last_learning_rate;
  trainer.last_loss = state.last_loss;
  trainer.optimizer = config.optimizer.name;
  trainer.best = state.best;
  trainer.run_id = state.run_id;
  trainer.config_json = config::config_to_json(config);
  return trainer;
}

}  // namespace

c10::ScalarType weight_type(const config::RunConfig& config) {
  return config.precision == "fp64" ? torch::kFloat64 : torch::kFloat32;
}

c10::ScalarType autocast_type(const config::RunConfig& config) {
  return config.precision == "bf16" ? torch::kBFloat16 : weight_type(config);
}

TrainState make_initial_state(const config::RunConfig& config, const c10::Device& device,
                              int64_t total_steps, distributed::World& world) {
  seed_generators(config.seed + (is_fault_due("defect.other_weights") ? 1 : 0), device);
  TrainState state;
  state.model = models::make_model(config.model);
  state.model.module->to(weight_type(config));
  state.model.module->to(device);
  if (!config.model.init_from.empty()) {
    world.agree(
        "initial weights", distributed::World::Who::kRootOnly,
        [&] { load_initial_weights(state.model, config.model.init_from); }, kLoadSeconds);
  }
  for (const auto& entry : state.model.module->named_parameters()) {
    state.parameters.push_back({entry.key(), entry.value()});
  }
  world.broadcast(tensors_of(model_tensors(state.model)));
  seed_rank(config.seed, world.rank(), device);
  allocate_gradients(state.parameters);
  const bool is_sharded = config.ddp.shard_optimizer && world.size() > 1;
  state.optimizer = is_sharded ? make_sharded_optimizer(config.optimizer, state.parameters, world)
                               : make_optimizer(config.optimizer, state.parameters);
  // A schedule that never falls has no horizon: a longer run is then the same run.
  state.schedule = {
      config.schedule, config.optimizer.learning_rate,
      is_decaying(config.schedule) ? config.schedule.total_steps.value_or(total_steps) : 0};
  return state;
}

std::vector<NamedTensor> replicated_tensors(const TrainState& state,
                                            const config::RunConfig& config) {
  // Without shared batch norms each rank has running statistics of its own images.
  std::vector<NamedTensor> tensors =
      config.ddp.sync_batch_norm ? model_tensors(state.model) : state.parameters;
  if (config.ddp.shard_optimizer) return tensors;
  for (const NamedTensor& entry : state.optimizer->state()) tensors.push_back(entry);
  return tensors;
}

void broadcast_buffers(const TrainState& state, distributed::World& world) {
  std::vector<at::Tensor> buffers;
  for (const auto& entry : state.model.module->named_buffers()) buffers.push_back(entry.value());
  world.broadcast(buffers);
}

HostState capture(const TrainState& state, const config::RunConfig& config,
                  const c10::Device& device, distributed::World& world) {
  HostState host;
  const std::vector<NamedTensor> optimizer = state.optimizer->gather_state(world);
  const checkpoints::RankState own{world.rank(), cpu_rng_hex(), device_rng_hex(device)};
  const std::vector<std::string> ranks =
      world.gather_texts("generators", checkpoints::to_json(own));
  if (!world.is_root()) return host;
  for (const std::string& text : ranks) {
    host.parts.ranks.push_back(checkpoints::rank_state_from_json(text, "a rank's state"));
  }
  host.parts.model = host_views(model_tensors(state.model), host.tensors);
  host.parts.optimizer = host_views(optimizer, host.tensors);
  host.parts.trainer = trainer_state(state, config);
  return host;
}

void restore(TrainState& state, const ResumePoint& point, const checkpoints::Checkpoint* checkpoint,
             const config::RunConfig& config, const c10::Device& device,
             distributed::World& world) {
  const torch::NoGradGuard no_grad;
  const std::vector<NamedTensor> model = model_tensors(state.model);
  const std::vector<NamedTensor> optimizer = state.optimizer->gather_state(world);
  const bool skips_optimizer = is_fault_due("defect.skip_optimizer_restore");
  world.agree(
      "load", distributed::World::Who::kRootOnly,
      [&] {
        load_tensors(model, *checkpoint->model);
        if (!skips_optimizer) load_tensors(optimizer, *checkpoint->optimizer);
      },
      kLoadSeconds);
  world.broadcast(tensors_of(model));
  state.optimizer->scatter_state(world, optimizer);
  const checkpoints::TrainerState& trainer = point.trainer;
  state.counters = {trainer.step, trainer.updates, trainer.skipped, trainer.samples_seen,
                    trainer.tokens_seen};
  if (is_fault_due("defect.step_off_by_one")) ++state.counters.updates;
  state.position = {trainer.epoch, trainer.samples_in_epoch};
  state.schedule.total_steps = trainer.schedule_total_steps;
  if (is_fault_due("defect.wrong_lr_after_resume")) state.schedule.learning_rate *= 0.5;
  state.last_learning_rate = trainer.last_learning_rate;
  state.last_loss = trainer.last_loss;
  state.best = trainer.best;
  state.run_id = trainer.run_id;
  restore_rng(point, config, device, world.rank());
}

}  // namespace assay::step
