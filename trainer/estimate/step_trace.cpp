#include "trainer/estimate/step_trace.h"

#include <memory>
#include <mutex>

#include <torch/torch.h>

#include "models/losses.h"
#include "models/model.h"
#include "trainer/step/autocast.h"
#include "trainer/step/optimizer.h"
#include "trainer/step/train_state.h"

namespace assay::estimate {
namespace {

constexpr int kSteps = 2;  // the second is as all later ones

struct Sample {
  at::Tensor features;
  at::Tensor targets;
};

int64_t sequence_length(const config::RunConfig& config, const models::Model& model) {
  return config.data.sequence_length.value_or(model.context_length);
}

class Tracer {
 public:
  Tracer(ShapeDevice& device, const config::RunConfig& config)
      : device_(device),
        config_(config),
        recorder_(std::make_shared<TraceRecorder>()),
        model_(models::make_model(config.model, models::Weights::kShapesOnly)) {
    device.record_to(recorder_);
  }

  StepTrace run() {
    load();
    for (int step = 0; step < kSteps; ++step) {
      recorder_->reset_peak();
      is_last_step_ = step + 1 == kSteps;
      run_step();
      (step == 0 ? trace_.first_peak : trace_.steady_peak) = recorder_->peak();
    }
    trace_.reserved_bytes = recorder_->reserved_bytes();
    if (trace_.tokens > 0) {
      trace_.kv_elements_per_token =
          recorder_->attention_elements() / (trace_.tokens * kSteps * micro_steps());
    }
    return trace_;
  }

 private:
  void load() {
    model_.module->to(step::weight_type(config_));
    recorder_->set_kind(MemoryKind::kWeights);
    device_.adopt(*model_.module);
    for (const auto& entry : model_.module->named_parameters()) {
      parameters_.push_back({entry.key(), entry.value()});
      const at::Tensor& tensor = entry.value();
      trace_.weight_element_bytes = static_cast<int64_t>(tensor.element_size());
      trace_.registered.push_back({.name = entry.key(),
                                   .bytes = static_cast<int64_t>(tensor.nbytes()),
                                   .elements = tensor.numel()});
    }
    recorder_->set_kind(MemoryKind::kGradients);
    step::allocate_gradients(parameters_);
    recorder_->set_kind(MemoryKind::kOptimizer);
    optimizer_ = step::make_optimizer(config_.optimizer, parameters_);
    trace_.parameters = models::parameter_count(model_);
    trace_.parameter_tensors = static_cast<int64_t>(parameters_.size());
    trace_.state = recorder_->live_bytes();
    trace_.requested = recorder_->requested_bytes();
    trace_.load_bytes = recorder_->peak().bytes;
    trace_.is_language_model = model_.task == models::Task::kLanguageModel;
    watch_gradients();
  }

  void watch_gradients() {
    for (const step::NamedTensor& parameter : parameters_) {
      const at::Tensor& tensor = parameter.tensor;
      const auto bytes = static_cast<int64_t>(tensor.nbytes());
      const int64_t elements = tensor.numel();
      tensor.register_hook([this, name = parameter.name, bytes, elements](const at::Tensor&) {
        const std::lock_guard lock(mutex_);
        if (!is_recording_) return;
        trace_.ready.push_back(
            {name, bytes, elements, recorder_->num_operations() - first_operation_});
      });
    }
  }

  // All but the first are alike.
  int64_t micro_steps() const { return std::min<int64_t>(config_.gradient_accumulation_steps, 2); }

  // A step of the trainer: zeroed gradients, its micro-steps, clipping, update.
  void run_step() {
    recorder_->set_stage(Stage::kUpdate);
    recorder_->set_kind(MemoryKind::kTemporaries);
    at::_foreach_zero_(gradients());
    at::Tensor loss_sum;
    for (int64_t micro_step = 0; micro_step < micro_steps(); ++micro_step) {
      is_recording_ = is_last_step_ && micro_step + 1 == micro_steps();
      if (is_recording_) first_operation_ = recorder_->num_operations();
      const at::Tensor loss = micro_step_loss();
      loss_sum = loss_sum.defined() ? loss_sum + loss : loss;
    }
    recorder_->set_stage(Stage::kUpdate);
    recorder_->set_kind(MemoryKind::kTemporaries);
    update(loss_sum);
    if (!is_last_step_) return;
    const std::vector<OperationWork> all = recorder_->work();
    trace_.work.assign(all.begin() + static_cast<std::ptrdiff_t>(first_operation_), all.end());
  }

  at::Tensor micro_step_loss() {
    recorder_->set_stage(Stage::kForward);
    recorder_->set_kind(MemoryKind::kBatch);
    const Sample batch = make_batch();
    recorder_->set_kind(MemoryKind::kActivations);
    at::Tensor loss_sum;
    {
      const step::AutocastGuard autocast(ShapeDevice::device(), step::autocast_type(config_));
      const at::Tensor logits = model_.forward(batch.features);
      loss_sum =
          models::cross_entropy_sum(logits.reshape({-1, logits.size(-1)}),
                                    batch.targets.reshape({-1}), config_.label_smoothing_factor);
    }
    constexpr auto kActivations = static_cast<size_t>(MemoryKind::kActivations);
    trace_.activation_bytes = recorder_->requested_bytes()[kActivations];
    recorder_->set_stage(Stage::kBackward);
    recorder_->set_kind(MemoryKind::kTemporaries);
    (loss_sum / static_cast<double>(trace_.samples)).backward();
    return loss_sum.detach().to(torch::kFloat64);
  }

  Sample make_batch() {
    const auto options = at::TensorOptions().device(ShapeDevice::device());
    const int64_t count = config_.batch_size;
    trace_.samples = count;
    Sample batch;
    if (trace_.is_language_model) {
      const int64_t length = sequence_length(config_, model_);
      trace_.tokens = count * length;
      batch.features = at::empty({count, length}, options.dtype(at::kLong));
      batch.targets = at::empty({count, length}, options.dtype(at::kLong));
      trace_.batch_host_bytes =
          static_cast<int64_t>(batch.features.nbytes() + batch.targets.nbytes());
      return batch;
    }
    std::vector<int64_t> shape = {count};
    shape.insert(shape.end(), model_.image_shape.begin(), model_.image_shape.end());
    batch.features = at::empty(shape, options.dtype(at::kByte));
    batch.targets = at::empty({count}, options.dtype(at::kLong));
    trace_.batch_host_bytes =
        static_cast<int64_t>(batch.features.nbytes() + batch.targets.nbytes());
    const at::Tensor channels =
        at::empty({model_.image_shape[0], 1, 1}, options.dtype(step::weight_type(config_)));
    batch.features =
        batch.features.to(step::weight_type(config_)).div_(255.0).sub_(channels).mul_(channels);
    return batch;
  }

  void update(const at::Tensor& loss) {
    const torch::NoGradGuard no_grad;
    const std::vector<at::Tensor> grads = gradients();
    const at::Tensor norm = torch::stack(at::_foreach_norm(grads, 2)).norm();
    const at::Tensor found_nonfinite =
        loss.isfinite().logical_and(norm.isfinite()).logical_not().to(torch::kFloat32);
    if (config_.optimizer.max_grad_norm > 0.0) {
      at::_foreach_mul_(grads, (config_.optimizer.max_grad_norm / (norm + 1e-6)).clamp_max(1.0));
    }
    optimizer_->step(config_.optimizer.learning_rate, found_nonfinite.reshape({1}));
  }

  std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> list;
    for (const step::NamedTensor& parameter : parameters_) list.push_back(parameter.tensor.grad());
    return list;
  }

  ShapeDevice& device_;
  const config::RunConfig& config_;
  std::shared_ptr<TraceRecorder> recorder_;
  models::Model model_;
  std::vector<step::NamedTensor> parameters_;
  std::unique_ptr<step::Optimizer> optimizer_;
  StepTrace trace_;
  std::mutex mutex_;
  bool is_recording_ = false;
  bool is_last_step_ = false;
  size_t first_operation_ = 0;
};

}  // namespace

StepTrace trace_step(ShapeDevice& device, const config::RunConfig& config) {
  return Tracer(device, config).run();
}

}  // namespace assay::estimate
