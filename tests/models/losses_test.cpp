#include "models/losses.h"

#include <cmath>

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/utils.h>

#include "base/error.h"

namespace assay::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

at::Tensor random_logits(at::IntArrayRef shape, at::ScalarType type) {
  torch::manual_seed(19);
  return at::randn(shape, at::kDouble).mul(3.0).to(type);
}

// 0, 1, 2, ... modulo the classes, every fourth one ignored.
at::Tensor numbered_targets(int64_t count, int64_t classes) {
  const at::Tensor index = at::arange(count, at::kLong);
  return index.remainder(classes).masked_fill(index.remainder(4).eq(3), kIgnoredTarget);
}

at::Tensor torch_loss(const at::Tensor& logits, const at::Tensor& targets, double smoothing) {
  return torch::nn::functional::cross_entropy(logits, targets,
                                              torch::nn::functional::CrossEntropyFuncOptions()
                                                  .reduction(torch::kSum)
                                                  .label_smoothing(smoothing));
}

class AutocastOnCpu {
 public:
  AutocastOnCpu() { at::autocast::set_autocast_enabled(at::kCPU, true); }
  ~AutocastOnCpu() {
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
  AutocastOnCpu(const AutocastOnCpu&) = delete;
  AutocastOnCpu& operator=(const AutocastOnCpu&) = delete;
};

TEST(CrossEntropySum, EqualsTorchWithAndWithoutSmoothing) {
  for (const double smoothing : {0.0, 0.1, 1.0}) {
    at::Tensor logits = random_logits({37, 11}, at::kDouble).requires_grad_();
    at::Tensor same_logits = logits.detach().clone().requires_grad_();
    const at::Tensor targets = numbered_targets(37, 11);

    const at::Tensor loss = cross_entropy_sum(logits, targets, smoothing);
    loss.backward();
    const at::Tensor expected = torch_loss(same_logits, targets, smoothing);
    expected.backward();

    // Sums of 37 * 11 = 407 terms in another order: 407 * 2^-53 = 5e-14.
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 5e-14 * expected.item<double>());
    EXPECT_TRUE(at::allclose(logits.grad(), same_logits.grad(), 5e-14, 5e-14)) << smoothing;
  }
}

TEST(CrossEntropySum, GradientEqualsFiniteDifferences) {
  at::Tensor logits = random_logits({6, 5}, at::kDouble).requires_grad_();
  const at::Tensor targets = numbered_targets(6, 5);
  cross_entropy_sum(logits, targets, 0.1).backward();

  const double step = 1e-5;
  for (int64_t i = 0; i < logits.numel(); ++i) {
    at::Tensor shift = at::zeros({30}, at::kDouble);
    shift[i] = step;
    shift = shift.reshape({6, 5});
    const at::Tensor base = logits.detach();
    const double difference = cross_entropy_sum(base + shift, targets, 0.1).item<double>() -
                              cross_entropy_sum(base - shift, targets, 0.1).item<double>();
    // Central difference: step^2 / 6 * |f'''| with |f'''| < 1, plus the rounding of a loss of
    // about 20 over 2 * step, 20 * 2^-52 / 2e-5 = 2e-10.
    EXPECT_NEAR(logits.grad().flatten()[i].item<double>(), difference / (2.0 * step), 1e-9) << i;
  }
}

TEST(CrossEntropySum, IsTheLogarithmOfClassesForEqualLogits) {
  const at::Tensor loss = cross_entropy_sum(at::zeros({3, 8}), at::arange(3, at::kLong), 0.2);
  // Three logarithms in float: 3 * 2^-24 * 2.08 each, doubled for their sum.
  EXPECT_NEAR(loss.item<double>(), 3.0 * std::log(8.0), 1e-6);
}

TEST(CrossEntropySum, IgnoredTargetsGiveNeitherLossNorGradient) {
  for (const double smoothing : {0.0, 0.1}) {
    at::Tensor logits = random_logits({5, 7}, at::kFloat).requires_grad_();
    const at::Tensor targets = at::full({5}, kIgnoredTarget, at::kLong);
    const at::Tensor loss = cross_entropy_sum(logits, targets, smoothing);
    loss.backward();
    EXPECT_EQ(loss.item<float>(), 0.0f);
    EXPECT_EQ(logits.grad().abs().max().item<float>(), 0.0f);
  }
}

TEST(CrossEntropySum, OfPartsAddsUpToTheWhole) {
  const at::Tensor logits = random_logits({100, 9}, at::kDouble);
  const at::Tensor targets = numbered_targets(100, 9);
  const double whole = cross_entropy_sum(logits, targets, 0.1).item<double>();
  const double parts =
      cross_entropy_sum(logits.narrow(0, 0, 1), targets.narrow(0, 0, 1), 0.1).item<double>() +
      cross_entropy_sum(logits.narrow(0, 1, 99), targets.narrow(0, 1, 99), 0.1).item<double>();
  EXPECT_NEAR(parts, whole, 900 * std::ldexp(1.0, -53) * whole);
}

// 20,480 targets of about 4 each: 80,000, more than float16 can hold.
TEST(CrossEntropySum, OfHalfPrecisionLogitsIsFloatAndFinite) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor logits = random_logits({20480, 50}, type);
    const at::Tensor targets = numbered_targets(20480, 50);
    const at::Tensor loss = cross_entropy_sum(logits, targets, 0.0);
    const double expected = torch_loss(logits.to(at::kDouble), targets, 0.0).item<double>();
    ASSERT_EQ(loss.scalar_type(), at::kFloat);
    ASSERT_GT(expected, 65504.0);
    // 50 exponentials and one logarithm a target, then a tree of sums: 64 * 2^-24 = 4e-6.
    EXPECT_NEAR(loss.item<double>(), expected, 4e-6 * expected);
  }
}

TEST(CrossEntropySum, UnderAutocastIsFloatAndFinite) {
  const AutocastOnCpu autocast;
  const at::Tensor hidden = random_logits({4096, 32}, at::kFloat);
  const at::Tensor weight = random_logits({50, 32}, at::kFloat);
  const at::Tensor logits = at::linear(hidden, weight);
  const at::Tensor targets = numbered_targets(4096, 50);
  const at::Tensor loss = cross_entropy_sum(logits, targets, 0.1);
  const double expected = torch_loss(logits.to(at::kDouble), targets, 0.1).item<double>();
  ASSERT_EQ(logits.scalar_type(), at::kBFloat16);
  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  EXPECT_NEAR(loss.item<double>(), expected, 4e-6 * expected);
}

TEST(CrossEntropySum, HandsGradientsBackInTheTypeOfTheLogits) {
  at::Tensor logits = random_logits({5, 7}, at::kBFloat16).requires_grad_();
  cross_entropy_sum(logits, numbered_targets(5, 7), 0.1).backward();
  EXPECT_EQ(logits.grad().scalar_type(), at::kBFloat16);
}

TEST(CrossEntropySum, ShowsNonFiniteLogits) {
  at::Tensor logits = random_logits({4, 3}, at::kFloat);
  logits[1][2] = std::nanf("");
  EXPECT_TRUE(std::isnan(cross_entropy_sum(logits, at::zeros({4}, at::kLong), 0.0).item<float>()));
}

TEST(CrossEntropySum, RefusesShapesThatDoNotMatch) {
  try {
    cross_entropy_sum(at::zeros({2, 3, 4}), at::zeros({2, 3}, at::kLong), 0.0);
    FAIL() << "three-dimensional logits were taken";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("[2, 3, 4]"), HasSubstr("[N, K]")));
  }
  EXPECT_THROW(cross_entropy_sum(at::zeros({2, 3}), at::zeros({3}, at::kLong), 0.0), InternalError);
  EXPECT_THROW(cross_entropy_sum(at::zeros({2, 3}), at::zeros({2}), 0.0), InternalError);
}

TEST(CrossEntropySum, RefusesSmoothingOutsideItsRange) {
  for (const double smoothing : {-0.1, 1.5, std::nan("")}) {
    EXPECT_THROW(cross_entropy_sum(at::zeros({2, 3}), at::zeros({2}, at::kLong), smoothing),
                 InternalError);
  }
}

TEST(CorrectCount, CountsTargetsAtTheLargestLogitAndSkipsIgnoredOnes) {
  const at::Tensor logits = at::eye(4);  // largest at 0, 1, 2, 3
  const at::Tensor targets = at::tensor(std::vector<int64_t>{0, 2, 2, kIgnoredTarget});
  const at::Tensor count = correct_count(logits, targets);
  EXPECT_EQ(count.scalar_type(), at::kLong);
  EXPECT_EQ(count.dim(), 0);
  EXPECT_EQ(count.item<int64_t>(), 2);
}

TEST(CorrectCount, OfNothingIsZero) {
  EXPECT_EQ(correct_count(at::zeros({0, 4}), at::zeros({0}, at::kLong)).item<int64_t>(), 0);
}

}  // namespace
}  // namespace assay::models
