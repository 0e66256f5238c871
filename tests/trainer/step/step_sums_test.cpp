#include "trainer/step/step_sums.h"

#include <cmath>
#include <csignal>

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace assay::step {
namespace {

const c10::Device kCpu(c10::kCPU);

at::Tensor loss_of(double value) { return torch::tensor(value, torch::kFloat64); }

ReadSums sum_over_ranks(const SumsShape& shape, const std::vector<at::Tensor>& addends) {
  at::Tensor total = torch::zeros({shape.size()}, torch::kFloat64);
  for (const at::Tensor& addend : addends) total += addend;
  return read_sums(shape, total.const_data_ptr<double>());
}

TEST(StepSums, AddLossesInTheOrderOfTheWindow) {
  // 1e16 + 1 + 1 - 1e16 depends on the order: 0 here, 2 the other way round.
  const SumsShape one{4, 1};
  const SumsShape two{2, 2};
  const auto alone =
      make_sums(one, 0, {loss_of(1e16), loss_of(1), loss_of(1), loss_of(-1e16)}, 0, 0, kCpu);
  const auto first = make_sums(two, 0, {loss_of(1e16), loss_of(1)}, 0, 0, kCpu);
  const auto second = make_sums(two, 1, {loss_of(1), loss_of(-1e16)}, 0, 0, kCpu);
  EXPECT_EQ(sum_over_ranks(two, {first, second}).loss_sum,
            read_sums(one, alone.const_data_ptr<double>()).loss_sum);
}

TEST(StepSums, TellEveryRankOfOneRanksSignal) {
  const SumsShape shape{1, 3};
  std::vector<at::Tensor> addends;
  for (int64_t rank = 0; rank < 3; ++rank) {
    addends.push_back(make_sums(shape, rank, {loss_of(1)}, rank == 2 ? SIGUSR1 : 0, 0, kCpu));
  }
  EXPECT_EQ(sum_over_ranks(shape, addends).stop_signal, SIGUSR1);
  addends[1] = make_sums(shape, 1, {loss_of(1)}, SIGTERM, 0, kCpu);
  EXPECT_EQ(sum_over_ranks(shape, addends).stop_signal, SIGTERM);
}

TEST(StepSums, SumOfIdsIsExactAndKnowsAMissingOne) {
  const SumsShape shape{1, 2};
  const std::vector<int64_t> left = {0, 5, int64_t{1} << 40};
  const std::vector<int64_t> right = {7, 1};
  const std::vector<int64_t> all = {1, 0, int64_t{1} << 40, 5, 7};
  const auto a = make_sums(shape, 0, {loss_of(0)}, 0, ids_sum(left), kCpu);
  const auto b = make_sums(shape, 1, {loss_of(0)}, 0, ids_sum(right), kCpu);
  const ReadSums read = sum_over_ranks(shape, {a, b});
  EXPECT_EQ(read.sum_of_ids, ids_sum(all));
  EXPECT_NE(read.sum_of_ids, ids_sum(left));
}

TEST(StepSums, NameTheRankOfTheFirstNonfiniteLoss) {
  const SumsShape shape{2, 2};
  const auto good = make_sums(shape, 0, {loss_of(1), loss_of(2)}, 0, 0, kCpu);
  const auto bad = make_sums(shape, 1, {loss_of(3), loss_of(NAN)}, 0, 0, kCpu);
  const ReadSums read = sum_over_ranks(shape, {good, bad});
  EXPECT_EQ(read.nonfinite_rank, 1);
  EXPECT_TRUE(std::isnan(read.loss_sum));
}

}  // namespace
}  // namespace assay::step
