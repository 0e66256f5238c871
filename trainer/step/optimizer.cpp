#include "trainer/step/optimizer.h"

#include <torch/torch.h>

#include "base/error.h"
#include "base/text.h"
#include "trainer/distributed/world.h"

namespace assay::step {
namespace {

// Parameters that share a weight decay, as the lists that the foreach and fused kernels take.
struct ParameterGroup {
  double weight_decay = 0;
  std::vector<std::string> names;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> list;
    list.reserve(parameters.size());
    for (const at::Tensor& parameter : parameters) list.push_back(parameter.grad());
    return list;
  }
  std::vector<at::Tensor> zeros() const {
    std::vector<at::Tensor> list;
    list.reserve(parameters.size());
    for (const at::Tensor& parameter : parameters) {
      list.push_back(torch::zeros_like(parameter, at::MemoryFormat::Preserve).detach());
    }
    return list;
  }
};

std::vector<ParameterGroup> decay_groups(const config::OptimizerConfig& config,
                                         const std::vector<NamedTensor>& parameters) {
  ParameterGroup decayed{config.weight_decay, {}, {}};
  ParameterGroup plain{0.0, {}, {}};
  for (const NamedTensor& entry : parameters) {
    const bool is_decayed = config.weight_decay != 0.0 && entry.tensor.dim() >= 2;
    ParameterGroup& group = is_decayed ? decayed : plain;
    group.names.push_back(entry.name);
    group.parameters.push_back(entry.tensor);
  }
  std::vector<ParameterGroup> groups;
  if (!decayed.parameters.empty()) groups.push_back(std::move(decayed));
  if (!plain.parameters.empty()) groups.push_back(std::move(plain));
  return groups;
}

void append_state(std::vector<NamedTensor>& state, const std::string& kind,
                  const ParameterGroup& group, const std::vector<at::Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    state.push_back({cat(kind, "/", group.names[i]), tensors[i]});
  }
}

// Adam and AdamW on ATen's fused kernels, which leave the step counter to the caller.
class FusedAdam final : public Optimizer {
 public:
  FusedAdam(const config::OptimizerConfig& config, const std::vector<NamedTensor>& parameters)
      : config_(config), groups_(decay_groups(config, parameters)) {
    for (const ParameterGroup& group : groups_) {
      moments_.push_back(group.zeros());
      squares_.push_back(group.zeros());
    }
    // float32 counts exactly to 2^24 updates; PyTorch keeps its counter the same way.
    step_ = torch::zeros({}, torch::TensorOptions()
                                 .dtype(torch::kFloat32)
                                 .device(groups_.front().parameters.front().device()));
  }

  void step(double learning_rate, const at::Tensor& found_nonfinite) override {
    step_.add_(1 - found_nonfinite.reshape({}));
    for (size_t g = 0; g < groups_.size(); ++g) {
      const ParameterGroup& group = groups_[g];
      const std::vector<at::Tensor> steps(group.parameters.size(), step_);
      const auto update = config_.name == "adamw" ? &call_adamw : &call_adam;
      update(group, moments_[g], squares_[g], steps, learning_rate, config_, found_nonfinite);
    }
  }

  std::vector<NamedTensor> state() const override {
    std::vector<NamedTensor> state;
    for (size_t g = 0; g < groups_.size(); ++g)
      append_state(state, "exp_avg", groups_[g], moments_[g]);
    for (size_t g = 0; g < groups_.size(); ++g) {
      append_state(state, "exp_avg_sq", groups_[g], squares_[g]);
    }
    state.push_back({"step", step_});
    return state;
  }

 private:
  using Tensors = std::vector<at::Tensor>;
  static void call_adamw(const ParameterGroup& group, const Tensors& moments,
                         const Tensors& squares, const Tensors& steps, double learning_rate,
                         const config::OptimizerConfig& config, const at::Tensor& found) {
    at::_fused_adamw_(group.parameters, group.gradients(), moments, squares, {}, steps,
                      learning_rate, config.adam_beta1, config.adam_beta2, group.weight_decay,
                      config.adam_epsilon, /*amsgrad=*/false, /*maximize=*/false, {}, found);
  }
  static void call_adam(const ParameterGroup& group, const Tensors& moments, const Tensors& squares,
                        const Tensors& steps, double learning_rate,
                        const config::OptimizerConfig& config, const at::Tensor& found) {
    at::_fused_adam_(group.parameters, group.gradients(), moments, squares, {}, steps,
                     learning_rate, config.adam_beta1, config.adam_beta2, group.weight_decay,
                     config.adam_epsilon,
                     /*amsgrad=*/false, /*maximize=*/false, {}, found);
  }

  config::OptimizerConfig config_;
  std::vector<ParameterGroup> groups_;
  std::vector<Tensors> moments_;
  std::vector<Tensors> squares_;
  at::Tensor step_;
};

// SGD with momentum; foreach kernels. A non-finite step is undone by selecting the old values.
class Sgd final : public Optimizer {
 public:
  Sgd(const config::OptimizerConfig& config, const std::vector<NamedTensor>& parameters)
      : config_(config), groups_(decay_groups(config, parameters)) {
    for (const ParameterGroup& group : groups_) {
      momenta_.push_back(config.momentum != 0.0 ? group.zeros() : std::vector<at::Tensor>{});
    }
  }

  void step(double learning_rate, const at::Tensor& found_nonfinite) override {
    const at::Tensor is_bad = found_nonfinite.reshape({}).to(torch::kBool);
    for (size_t g = 0; g < groups_.size(); ++g) update_group(g, learning_rate, is_bad);
  }

  std::vector<NamedTensor> state() const override {
    std::vector<NamedTensor> state;
    for (size_t g = 0; g < groups_.size(); ++g) {
      append_state(state, "momentum_buffer", groups_[g], momenta_[g]);
    }
    return state;
  }

 private:
  void update_group(size_t g, double learning_rate, const at::Tensor& is_bad) {
    const ParameterGroup& group = groups_[g];
    std::vector<at::Tensor> direction = group.gradients();
    if (group.weight_decay != 0.0) {
      direction = at::_foreach_add(direction, group.parameters, group.weight_decay);
    }
    if (config_.momentum != 0.0) {
      // b <- momentum * b + g; PyTorch's first step sets b = g, which a zero buffer gives too.
      const auto momenta =
          at::_foreach_add(at::_foreach_mul(momenta_[g], config_.momentum), direction);
      direction =
          config_.nesterov ? at::_foreach_add(direction, momenta, config_.momentum) : momenta;
      keep_unless(momenta_[g], momenta, is_bad);
    }
    keep_unless(group.parameters, at::_foreach_add(group.parameters, direction, -learning_rate),
                is_bad);
  }

  static void keep_unless(const std::vector<at::Tensor>& current,
                          const std::vector<at::Tensor>& updated, const at::Tensor& is_bad) {
    for (size_t i = 0; i < current.size(); ++i) {
      current[i].copy_(torch::where(is_bad, current[i], updated[i]));
    }
  }

  config::OptimizerConfig config_;
  std::vector<ParameterGroup> groups_;
  std::vector<std::vector<at::Tensor>> momenta_;
};

}  // namespace

std::vector<NamedTensor> Optimizer::gather_state(distributed::World&) const { return state(); }

void Optimizer::scatter_state(distributed::World& world, const std::vector<NamedTensor>&) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& entry : state()) tensors.push_back(entry.tensor);
  world.broadcast(tensors);
}

std::unique_ptr<Optimizer> make_optimizer(const config::OptimizerConfig& config,
                                          std::vector<NamedTensor> parameters) {
  if (parameters.empty()) throw InternalError("a model without parameters reached the optimizer");
  if (config.name == "adam" || config.name == "adamw") {
    return std::make_unique<FusedAdam>(config, parameters);
  }
  if (config.name == "sgd") return std::make_unique<Sgd>(config, parameters);
  throw InternalError(cat("unknown optimizer ", quoted(config.name), " passed validation"));
}

void allocate_gradients(const std::vector<NamedTensor>& parameters) {
  for (const NamedTensor& entry : parameters) {
    entry.tensor.mutable_grad() =
        torch::zeros_like(entry.tensor, at::MemoryFormat::Preserve).detach();
  }
}

}  // namespace assay::step
