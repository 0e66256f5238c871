#include "base/queue.h"

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(BoundedQueue, KeepsTheOrder) {
  BoundedQueue<int> queue(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.push(i));
  EXPECT_EQ(queue.size(), 3U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(queue.pop(), i);
}

TEST(BoundedQueue, CarriesItemsThatOnlyMove) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  queue.push(std::make_unique<int>(5));
  EXPECT_EQ(*queue.pop().value(), 5);
}

TEST(BoundedQueue, DrainsAfterClose) {
  BoundedQueue<int> queue(2);
  queue.push(1);
  queue.close();
  EXPECT_FALSE(queue.push(2));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, WakesAWaitingPopOnClose) {
  BoundedQueue<int> queue(1);
  std::optional<int> got = 7;
  std::thread consumer([&] { got = queue.pop(); });
  queue.close();
  consumer.join();
  EXPECT_EQ(got, std::nullopt);
}

TEST(BoundedQueue, WakesEveryWaitingPushOnClose) {
  BoundedQueue<int> queue(1);
  queue.push(0);
  std::atomic<int> num_refused = 0;
  std::vector<std::thread> producers;
  for (int i = 0; i < 4; ++i) {
    producers.emplace_back([&] { num_refused += queue.push(1) ? 0 : 1; });
  }
  queue.close();
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(num_refused, 4);
  EXPECT_EQ(queue.size(), 1U);
}

TEST(BoundedQueue, LosesAndDoublesNothingBetweenManyThreads) {
  constexpr int kNumThreads = 4;
  constexpr int kItemsEach = 2000;
  constexpr size_t kCapacity = 8;
  BoundedQueue<int> queue(kCapacity);
  std::vector<std::vector<int>> taken(kNumThreads);
  std::atomic<bool> is_over_capacity = false;
  std::vector<std::thread> consumers;
  std::vector<std::thread> producers;
  for (int thread = 0; thread < kNumThreads; ++thread) {
    consumers.emplace_back([&, thread] {
      while (const std::optional<int> item = queue.pop()) {
        taken[static_cast<size_t>(thread)].push_back(*item);
        if (queue.size() > kCapacity) is_over_capacity = true;
      }
    });
    producers.emplace_back([&, thread] {
      for (int i = 0; i < kItemsEach; ++i) queue.push(thread * kItemsEach + i);
    });
  }
  for (std::thread& producer : producers) producer.join();
  queue.close();
  for (std::thread& consumer : consumers) consumer.join();
  std::vector<int> num_seen(kNumThreads * kItemsEach, 0);
  for (const std::vector<int>& items : taken) {
    for (const int item : items) ++num_seen[static_cast<size_t>(item)];
  }
  EXPECT_EQ(num_seen, std::vector<int>(kNumThreads * kItemsEach, 1));
  EXPECT_FALSE(is_over_capacity);
}

}  // namespace
}  // namespace assay
