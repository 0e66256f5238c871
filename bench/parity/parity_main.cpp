// One model, one batch: writes weights, input, logits, loss, every gradient, the logits of
// evaluation and the weights after some steps of the optimizer to a safetensors file, for parity.py
// to compare with Python.
//
//   bench_parity FILE.safetensors STEPS [options of `assay train`]
//
// The batch has --batch_size samples of the model's shape, or of data.sequence_length tokens;
// dropout is off unless model.dropout is given.
#include <cstdio>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/safetensors.h"
#include "models/losses.h"
#include "models/model.h"
#include "trainer/config/config_io.h"
#include "trainer/step/device.h"
#include "trainer/step/optimizer.h"
#include "trainer/step/train_state.h"

namespace assay {
namespace {

constexpr uint64_t kBatchSeed = 12345;
constexpr double kDisturbance = 0.02;

// Copies on the host, and the views of them to write.
class Dump {
 public:
  void add(const std::string& name, const at::Tensor& tensor) {
    const at::Tensor host = tensor.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
    owners_.push_back(host.contiguous());
    const at::Tensor& kept = owners_.back();
    const char* dtype = kept.scalar_type() == at::kDouble ? "F64"
                        : kept.scalar_type() == at::kLong ? "I64"
                                                          : "F32";
    views_.push_back({name, dtype, kept.sizes().vec(), kept.const_data_ptr(), kept.nbytes()});
  }
  void write(const std::string& path) const {
    checkpoints::write_safetensors(path, views_, {}, "");
  }

 private:
  std::vector<at::Tensor> owners_;
  std::vector<checkpoints::TensorView> views_;
};

struct Batch {
  at::Tensor features;  // [B, C, H, W] or [B, T]
  at::Tensor targets;   // [B] or [B T]
};

Batch make_batch(const models::Model& model, const config::RunConfig& config) {
  torch::manual_seed(kBatchSeed);
  if (model.task == models::Task::kLanguageModel) {
    const int64_t length = config.data.sequence_length.value_or(model.context_length);
    return {.features = torch::randint(model.num_classes, {config.batch_size, length}, at::kLong),
            .targets = torch::randint(model.num_classes, {config.batch_size * length}, at::kLong)};
  }
  std::vector<int64_t> shape = {config.batch_size};
  shape.insert(shape.end(), model.image_shape.begin(), model.image_shape.end());
  return {.features = torch::randn(shape).to(step::weight_type(config)),
          .targets = torch::randint(model.num_classes, {config.batch_size}, at::kLong)};
}

// A layer that starts at zero (the head of a vision transformer) would hide the gradients behind
// it.
void disturb(const models::Model& model) {
  const torch::NoGradGuard no_grad;
  for (const at::Tensor& parameter : model.module->parameters()) {
    at::Tensor changed = parameter;
    changed.add_(torch::randn(parameter.sizes()).mul_(kDisturbance));
  }
}

// Mean over the batch, so that the optimizers meet gradients as in training.
at::Tensor mean_loss(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor rows = logits.reshape({-1, logits.size(-1)});
  return models::cross_entropy_sum(rows, targets, 0.0) / static_cast<double>(targets.numel());
}

void run(const std::string& path, int64_t steps, config::RunConfig config) {
  if (!config.model.dropout) config.model.dropout = 0.0;
  const c10::Device device =
      step::choose_device(config.precision == "fp64" ? "cpu" : config.device, 0);
  step::apply_numeric_settings(config, device);
  torch::manual_seed(config.seed);
  const models::Model model = models::make_model(config.model);
  disturb(model);
  model.module->to(step::weight_type(config));
  model.module->to(device);
  Batch batch = make_batch(model, config);
  batch = {batch.features.to(device), batch.targets.to(device)};
  Dump dump;
  dump.add("features", batch.features);
  dump.add("targets", batch.targets);
  std::vector<step::NamedTensor> parameters;
  for (const auto& entry : model.module->named_parameters()) {
    parameters.push_back({entry.key(), entry.value()});
    dump.add(cat("before/", entry.key()), entry.value());
  }
  for (const auto& entry : model.module->named_buffers()) {
    dump.add(cat("before/", entry.key()), entry.value());
  }
  step::allocate_gradients(parameters);
  const auto optimizer = step::make_optimizer(config.optimizer, parameters);
  const at::Tensor all_finite = torch::zeros({1}, at::TensorOptions(device));
  for (int64_t done = 0; done <= steps; ++done) {
    for (const step::NamedTensor& entry : parameters) entry.tensor.mutable_grad().zero_();
    const at::Tensor logits = model.forward(batch.features);
    const at::Tensor loss = mean_loss(logits, batch.targets);
    loss.backward();
    if (done == 0) {
      dump.add("logits", logits);
      dump.add("loss", loss);
      for (const step::NamedTensor& entry : parameters) {
        dump.add(cat("gradient/", entry.name), entry.tensor.grad());
      }
    }
    const torch::NoGradGuard no_grad;
    if (done < steps) optimizer->step(config.optimizer.learning_rate, all_finite);
  }
  for (const step::NamedTensor& entry : parameters) {
    if (steps > 0) dump.add(cat("after/", entry.name), entry.tensor);
  }
  for (const auto& entry : model.module->named_buffers()) {
    dump.add(cat("after/", entry.key()), entry.value());
  }
  model.module->eval();
  const torch::NoGradGuard no_grad;
  dump.add("evaluation_logits", model.forward(batch.features));
  dump.write(path);
}

int parity(const std::vector<std::string>& words) {
  const std::optional<int64_t> steps = words.size() < 2 ? std::nullopt : parse_int64(words[1]);
  if (!steps || *steps < 0) {
    throw ConfigError("usage: bench_parity FILE.safetensors STEPS [options of assay train]");
  }
  const std::vector<std::string> options(words.begin() + 2, words.end());
  run(words[0], *steps, config::parse_train_arguments(options).config);
  return 0;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  try {
    return assay::parity({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_parity: %s\n", assay::describe_exception(error).c_str());
    return static_cast<int>(assay::exit_code_of(error));
  }
}
