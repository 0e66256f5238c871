// A process group that plays one rank of many.
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/torch.h>

#include "trainer/distributed/gradient_reducer.h"
#include "trainer/distributed/process_group.h"
#include "trainer/distributed/world.h"

namespace assay::distributed {
namespace {

TEST(RoleGroup, LeavesTensorsAsTheyAreAndCountsThem) {
  const auto group = make_role_group(2, 5);
  std::vector<at::Tensor> tensors = {torch::arange(6, torch::kFloat32)};
  const auto work = group->allreduce(tensors);
  work->wait();
  EXPECT_TRUE(tensors.front().equal(torch::arange(6, torch::kFloat32)));
  EXPECT_TRUE(work->getFuture()->value().toTensorVector().front().is_same(tensors.front()));
  std::vector<at::Tensor> bytes = {torch::zeros({7}, torch::kByte)};
  group->broadcast(bytes)->wait();
  const CollectiveTally tally = role_tally(*group);
  EXPECT_EQ(tally.all_reduces, 1);
  EXPECT_EQ(tally.all_reduce_bytes, 24);
  EXPECT_EQ(tally.broadcasts, 1);
  EXPECT_EQ(tally.broadcast_bytes, 7);
  EXPECT_EQ(group->getRank(), 2);
  EXPECT_EQ(group->getSize(), 5);
}

class RoleWorld : public testing::TestWithParam<bool> {};

// The reducer of a rank that is alone in its role hands every gradient through, in buckets that
// hold each byte once; compressed, half of the bytes travel.
TEST_P(RoleWorld, ReducesEveryGradientOnce) {
  launch::ProgressPage page = launch::ProgressPage::create();
  World world = World::in_role(6, 8, page);
  EXPECT_EQ(world.rank(), 6);
  EXPECT_EQ(world.size(), 8);
  EXPECT_FALSE(world.is_distributed());
  const std::vector<at::Tensor> parameters = {torch::ones({100}, torch::requires_grad()),
                                              torch::ones({300}, torch::requires_grad())};
  for (const at::Tensor& parameter : parameters) {
    parameter.mutable_grad() = torch::zeros_like(parameter);
  }
  GradientReducer reducer(world, {"a", "b"}, parameters,
                          {.bucket_mb = 1e-4, .first_bucket_mb = 1e-4, .is_bf16 = GetParam()});
  const CollectiveTally before = role_tally(*world.group());
  reducer.prepare({});
  ((parameters[0] * 3).sum() + (parameters[1] * 2).sum()).backward();
  reducer.finish();
  EXPECT_TRUE(parameters[0].grad().equal(torch::full({100}, 3.0F)));
  EXPECT_TRUE(parameters[1].grad().equal(torch::full({300}, 2.0F)));
  ASSERT_EQ(reducer.buckets().size(), 2u);
  EXPECT_EQ(reducer.buckets()[0].bytes + reducer.buckets()[1].bytes, 1600);
  const CollectiveTally after = role_tally(*world.group());
  EXPECT_EQ(after.all_reduces - before.all_reduces, 2);
  EXPECT_EQ(after.all_reduce_bytes - before.all_reduce_bytes, GetParam() ? 800 : 1600);
}

INSTANTIATE_TEST_SUITE_P(Compression, RoleWorld, testing::Bool(),
                         [](const auto& one) { return one.param ? "Bfloat" : "Full"; });

}  // namespace
}  // namespace assay::distributed
