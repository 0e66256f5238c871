#include "models/sync_batch_norm.h"

#include <utility>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/torch.h>

namespace assay::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kOverPlaces[] = {0, 2, 3};  // of [N, C, H, W]

at::Tensor by_channel(const at::Tensor& values) { return values.view({1, -1, 1, 1}); }

struct Statistics {
  at::Tensor mean;            // [C]
  at::Tensor sum_of_squares;  // [C], of the differences from the mean
  at::Tensor count;           // [], values a channel
};

// Chan et al. 1979, eq. 2.1: exact for any split of the values, unlike sums of squares.
Statistics over_ranks(const at::Tensor& x, const RankSums& sums) {
  const int64_t channels = x.size(1);
  const double count = static_cast<double>(x.numel()) / static_cast<double>(channels);
  const at::Tensor mean = x.mean(kOverPlaces);
  const at::Tensor squares = (x - by_channel(mean)).square().sum(kOverPlaces);
  const at::Tensor table = at::zeros({sums.size, 2 * channels + 1}, x.options());
  table[sums.rank].copy_(at::cat({mean, squares, at::full({1}, count, x.options())}));
  sums.all_reduce(table);
  const at::Tensor means = table.narrow(1, 0, channels);
  const at::Tensor counts = table.narrow(1, 2 * channels, 1);  // [ranks, 1]
  Statistics all;
  all.count = counts.sum();
  all.mean = (means * counts).sum(0) / all.count;
  all.sum_of_squares =
      table.narrow(1, channels, channels).sum(0) + ((means - all.mean).square() * counts).sum(0);
  return all;
}

void move_running_values(const BatchNormTensors& tensors, const Statistics& all, double momentum) {
  tensors.running_mean.lerp_(all.mean.to(tensors.running_mean.scalar_type()), momentum);
  const at::Tensor unbiased = all.sum_of_squares / (all.count - 1);
  tensors.running_var.lerp_(unbiased.to(tensors.running_var.scalar_type()), momentum);
}

struct SumsHolder : public torch::CustomClassHolder {
  explicit SumsHolder(RankSums own) : sums(std::move(own)) {}
  RankSums sums;
};

class SyncBatchNorm : public torch::autograd::Function<SyncBatchNorm> {
 public:
  // `all`: of what x holds on all ranks.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const Statistics& all, double epsilon,
                            const RankSums& sums) {
    const at::Tensor inverse = (all.sum_of_squares / all.count + epsilon).rsqrt();
    context->save_for_backward({x, weight, all.mean, inverse, all.count});
    context->saved_data["sums"] = c10::IValue::make_capsule(c10::make_intrusive<SumsHolder>(sums));
    const at::Tensor normal = (x.to(inverse.scalar_type()) - by_channel(all.mean)) *
                              by_channel(inverse * weight.to(inverse.scalar_type()));
    return (normal + by_channel(bias)).to(x.scalar_type());
  }

  // With m values a channel over all ranks: dx = (dy - sum(dy)/m - x' sum(dy x')/m) weight/stddev
  // (Ioffe & Szegedy 2015, sec. 3), both sums over all ranks.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& inverse = saved[3];
    const at::Tensor x = saved[0].to(inverse.scalar_type());
    const at::Tensor gradient = gradients[0].to(inverse.scalar_type());
    const at::Tensor normal = (x - by_channel(saved[2])) * by_channel(inverse);
    const at::Tensor bias_gradient = gradient.sum(kOverPlaces);
    const at::Tensor weight_gradient = (gradient * normal).sum(kOverPlaces);
    const at::Tensor both = at::stack({bias_gradient, weight_gradient});
    const auto holder = context->saved_data["sums"].toCapsule();
    static_cast<const SumsHolder&>(*holder).sums.all_reduce(both);
    both.div_(saved[4]);
    const at::Tensor x_gradient = (gradient - by_channel(both[0]) - normal * by_channel(both[1])) *
                                  by_channel(inverse * saved[1].to(inverse.scalar_type()));
    return {x_gradient.to(saved[0].scalar_type()),
            weight_gradient.to(saved[1].scalar_type()),
            bias_gradient.to(saved[1].scalar_type()),
            {},
            {},
            {}};
  }
};

}  // namespace

at::Tensor sync_batch_norm(const at::Tensor& x, const BatchNormTensors& tensors,
                           const BatchNormNumbers& numbers, const RankSums& sums) {
  const auto type = x.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  Statistics all;
  {
    const torch::NoGradGuard no_grad;
    all = over_ranks(x.to(type), sums);
    move_running_values(tensors, all, numbers.momentum);
  }
  return SyncBatchNorm::apply(x, tensors.weight, tensors.bias, all, numbers.epsilon, sums);
}

}  // namespace assay::models
