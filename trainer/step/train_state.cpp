#include "trainer/step/train_state.h"

#include <cstring>
#include <map>

#include <torch/torch.h>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/text.h"
#include "trainer/config/config_io.h"
#include "trainer/step/device.h"

namespace assay::step {
namespace {

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

const checkpoints::RankState& rank_state(const checkpoints::Checkpoint& checkpoint, int64_t rank) {
  for (const checkpoints::RankState& state : checkpoint.ranks) {
    if (state.rank == rank) return state;
  }
  throw CheckpointError(cat("no state of rank ", rank, " (", checkpoint.path, ", ",
                            checkpoint.ranks.size(), " rank file(s))"));
}

}  // namespace

c10::ScalarType weight_type(const config::RunConfig& config) {
  return config.precision == "fp64" ? torch::kFloat64 : torch::kFloat32;
}

c10::ScalarType autocast_type(const config::RunConfig& config) {
  return config.precision == "bf16" ? torch::kBFloat16 : weight_type(config);
}

TrainState make_initial_state(const config::RunConfig& config, const c10::Device& device,
                              int64_t total_steps) {
  seed_generators(config.seed, device);
  TrainState state;
  state.model = models::make_model(config.model);
  state.model.module->to(weight_type(config));
  state.model.module->to(device);
  for (const auto& entry : state.model.module->named_parameters()) {
    state.parameters.push_back({entry.key(), entry.value()});
  }
  allocate_gradients(state.parameters);
  state.optimizer = make_optimizer(config.optimizer, state.parameters);
  // A schedule that never falls has no horizon: a longer run is then the same run.
  state.schedule = {
      config.schedule, config.optimizer.learning_rate,
      is_decaying(config.schedule) ? config.schedule.total_steps.value_or(total_steps) : 0};
  return state;
}

HostState capture(const TrainState& state, const config::RunConfig& config,
                  const c10::Device& device) {
  HostState host;
  host.parts.model = host_views(model_tensors(state.model), host.tensors);
  host.parts.optimizer = host_views(state.optimizer->state(), host.tensors);
  checkpoints::TrainerState& trainer = host.parts.trainer;
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
  host.parts.ranks.push_back({0, cpu_rng_hex(), device_rng_hex(device)});
  return host;
}

void restore(TrainState& state, const checkpoints::Checkpoint& checkpoint,
             const c10::Device& device) {
  const torch::NoGradGuard no_grad;
  load_tensors(model_tensors(state.model), *checkpoint.model);
  if (!is_fault_due("defect.skip_optimizer_restore")) {
    load_tensors(state.optimizer->state(), *checkpoint.optimizer);
  }
  const checkpoints::TrainerState& trainer = checkpoint.trainer;
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
  if (!is_fault_due("defect.skip_rng_restore")) {
    const checkpoints::RankState& rank = rank_state(checkpoint, 0);
    restore_cpu_rng(rank.cpu_rng_hex);
    restore_device_rng(device, rank.cuda_rng_hex);
  }
}

}  // namespace assay::step
