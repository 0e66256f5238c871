#include "trainer/distributed/store_lane.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::distributed {
namespace {

void sleep_seconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

TEST(StoreLane, MakesCallsAndRethrows) {
  StoreLane lane;
  int made = 0;
  lane.run([&] { ++made; }, 10);
  EXPECT_EQ(made, 1);
  EXPECT_THROW(lane.run([] { throw std::runtime_error("said no"); }, 10), std::runtime_error);
  lane.run([&] { ++made; }, 10);
  EXPECT_EQ(made, 2);
}

TEST(StoreLane, GivesUpACallThatHangsAndEveryLaterOneAtOnce) {
  StoreLane lane;
  const auto is_over = std::make_shared<std::atomic<bool>>(false);
  EXPECT_THROW(lane.run(
                   [is_over] {
                     while (!is_over->load()) sleep_seconds(0.01);
                   },
                   0.3),
               LaunchError);
  std::atomic<bool> is_made{false};
  EXPECT_THROW(lane.run([&] { is_made = true; }, 1e6), LaunchError);
  is_over->store(true);
  EXPECT_FALSE(is_made);
}

TEST(StoreLane, EndsACallWhenAnotherThreadGivesUp) {
  StoreLane lane;
  const auto is_over = std::make_shared<std::atomic<bool>>(false);
  std::thread other([&] {
    sleep_seconds(0.1);
    lane.give_up();
  });
  EXPECT_THROW(lane.run(
                   [is_over] {
                     while (!is_over->load()) sleep_seconds(0.01);
                   },
                   1e6),
               LaunchError);
  other.join();
  is_over->store(true);
}

}  // namespace
}  // namespace assay::distributed
