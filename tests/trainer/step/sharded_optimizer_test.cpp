#include "trainer/step/sharded_optimizer.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::step {
namespace {

using testing::ElementsAre;

TEST(AssignOwners, GivesTheLargestFirstToTheLeastLoaded) {
  EXPECT_THAT(assign_owners({10, 7, 5, 4}, 2), ElementsAre(0, 1, 1, 0));
}

TEST(AssignOwners, LeavesRanksEmptyWhenThereAreMoreThanParameters) {
  EXPECT_THAT(assign_owners({3, 3}, 4), ElementsAre(0, 1));
}

TEST(AssignOwners, BalancesWithinTheLargestParameter) {
  std::vector<int64_t> sizes;
  for (int64_t i = 1; i <= 50; ++i) sizes.push_back(i * 37 % 101 + 1);
  const std::vector<int64_t> owners = assign_owners(sizes, 4);
  std::vector<int64_t> loads(4, 0);
  for (size_t i = 0; i < sizes.size(); ++i) loads[static_cast<size_t>(owners[i])] += sizes[i];
  const auto [low, high] = std::minmax_element(loads.begin(), loads.end());
  // Greedy by size: the last addition to the fullest rank went to the then least loaded one.
  EXPECT_LE(*high - *low, *std::max_element(sizes.begin(), sizes.end()));
}

}  // namespace
}  // namespace assay::step
