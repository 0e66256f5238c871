#include "trainer/distributed/gradient_reducer.h"

#include <utility>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <torch/torch.h>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/text.h"

namespace assay::distributed {
namespace {

size_t bytes_of_mb(double mb) { return static_cast<size_t>(mb * 1024 * 1024); }

}  // namespace

struct GradientReducer::State {
  World& world;
  ReducerSettings settings;
  std::vector<std::string> names;
  std::vector<at::Tensor> parameters;
  std::unique_ptr<c10d::Reducer> reducer;
  std::function<void(size_t, size_t)> on_bucket;
  std::vector<Bucket> buckets;  // of the newest reduction
  size_t num_reduced = 0;       // buckets of this backward
  size_t num_buckets = 0;

  std::string name_of(const at::Tensor& parameter) const {
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].is_same(parameter)) return names[i];
    }
    return "?";
  }

  void note(const c10d::GradBucket& bucket) {
    Bucket entry{static_cast<int64_t>(bucket.getBuffer().nbytes()), {}};
    for (const at::Tensor& parameter : bucket.getParameters()) {
      entry.parameters.push_back(name_of(parameter));
    }
    buckets.push_back(std::move(entry));
  }

  void prime();
};

namespace {

c10::intrusive_ptr<c10::ivalue::Future> finished(const at::Tensor& tensor) {
  auto future = c10::make_intrusive<c10::ivalue::Future>(
      c10::ListType::create(c10::TensorType::get()),
      std::vector<c10::Device>(tensor.is_cuda() ? std::vector{tensor.device()}
                                                : std::vector<c10::Device>{}));
  future->markCompleted(c10::IValue(std::vector<at::Tensor>{tensor}));
  return future;
}

}  // namespace

// Sums a bucket over the ranks. c10d's own reduction would divide by their number; ours divides by
// the step's count of valid targets, before.
class SumHook final : public c10d::CommHookInterface {
 public:
  explicit SumHook(GradientReducer::State& state) : state_(state) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    fault_point("ddp.bucket");
    state_.num_buckets = bucket.isLast() ? bucket.getIndex() + 1 : state_.num_buckets;
    if (state_.buckets.size() == bucket.getIndex()) state_.note(bucket);
    ++state_.num_reduced;
    if (state_.on_bucket) state_.on_bucket(bucket.getIndex(), state_.num_buckets);
    at::Tensor sum = bucket.getBufferRef();
    if (is_fault_due("defect.skip_collective")) return finished(sum);
    const int64_t planned = sum.numel();
    if (is_fault_due("defect.wrong_shape")) sum = sum.narrow(0, 0, planned - 1);
    state_.world.count_collective(sum.numel(), planned);
    return state_.settings.is_bf16 ? reduce_in_bf16(sum) : reduce(sum);
  }

  at::Tensor parseHookResult(const c10::IValue& result) override {
    return c10d::detail::parseCppCommHookResult(result);
  }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> reduce(const at::Tensor& sum) {
    std::vector<at::Tensor> tensors = {sum};
    return state_.world.group()->allreduce(tensors)->getFuture();
  }

  c10::intrusive_ptr<c10::ivalue::Future> reduce_in_bf16(const at::Tensor& sum) {
    auto future = reduce(sum.to(torch::kBFloat16));
    return future->then(
        [sum](c10::ivalue::Future& reduced) {
          sum.copy_(reduced.value().toTensorVector().front());
          return c10::IValue(std::vector<at::Tensor>{sum});
        },
        future->elementType());
  }

  GradientReducer::State& state_;
};

// One reduction of zeros; then the buckets take the order in which gradients came.
void GradientReducer::State::prime() {
  reducer->prepare_for_forward();
  reducer->prepare_for_backward({});
  const at::Tensor loss = zero_loss(parameters);
  if (settings.is_static_graph) {
    // In its first pass a static graph is only recorded; the reduction follows when that is done.
    loss.register_hook([this](const at::Tensor& gradient) {
      torch::autograd::Engine::get_default_engine().queue_callback(
          [this] { reducer->delay_all_reduce(); });
      return gradient;
    });
  }
  loss.backward();
  reducer->rebuild_buckets();
  buckets.clear();
}

GradientReducer::GradientReducer(World& world, const std::vector<std::string>& names,
                                 const std::vector<at::Tensor>& parameters,
                                 const ReducerSettings& settings)
    : state_(new State{world, settings, names, parameters, nullptr, {}, {}, 0, 0}) {
  const size_t limit = bytes_of_mb(settings.bucket_mb);
  const size_t first_limit = bytes_of_mb(settings.first_bucket_mb);
  auto [assignment, limits] =
      c10d::compute_bucket_assignment_by_size(parameters, {first_limit, limit});
  std::reverse(assignment.begin(), assignment.end());  // the last parameters are ready first
  std::unordered_map<size_t, std::string> names_by_index;
  for (size_t i = 0; i < names.size(); ++i) names_by_index[i] = names[i];
  state_->reducer = std::make_unique<c10d::Reducer>(
      parameters, std::move(assignment), world.group(), std::vector<bool>(parameters.size(), false),
      static_cast<int64_t>(limit),
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true, names_by_index,
      static_cast<int64_t>(first_limit), /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false, std::vector<int64_t>{});
  state_->reducer->register_comm_hook(std::make_unique<SumHook>(*state_));
  if (settings.is_static_graph) state_->reducer->set_static_graph();
  state_->prime();
}

GradientReducer::~GradientReducer() = default;

void GradientReducer::prepare(std::function<void(size_t, size_t)> on_bucket) {
  state_->on_bucket = std::move(on_bucket);
  state_->num_reduced = 0;
  state_->reducer->prepare_for_forward();
  state_->reducer->prepare_for_backward({});
}

void GradientReducer::finish() {
  state_->on_bucket = {};
  if (state_->num_buckets > 0 && state_->num_reduced == state_->num_buckets) return;
  std::vector<std::string> missing = state_->names;
  for (size_t b = 0; b < state_->num_reduced && b < state_->buckets.size(); ++b) {
    for (const std::string& name : state_->buckets[b].parameters) std::erase(missing, name);
  }
  throw LaunchError(cat("backward on rank ", state_->world.rank(), " reduced ", state_->num_reduced,
                        " bucket(s) of gradients, the other ranks expect more; "
                        "at least one of these parameters got no gradient: ",
                        join(missing, ", "),
                        ". Fix: every parameter must take part in every step"));
}

const std::vector<GradientReducer::Bucket>& GradientReducer::buckets() const {
  return state_->buckets;
}

at::Tensor zero_loss(const std::vector<at::Tensor>& parameters) {
  at::Tensor loss;
  for (const at::Tensor& parameter : parameters) {
    const at::Tensor zero = parameter.sum() * 0;
    loss = loss.defined() ? loss + zero : zero;
  }
  return loss;
}

}  // namespace assay::distributed
