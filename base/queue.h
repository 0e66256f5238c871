// A bounded queue between threads, closed by either side. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace assay {

// push blocks while full, pop blocks while empty. After close() push refuses, pop drains what is
// left and then returns nothing. The invariant: at most `capacity` items are held.
template <class Item>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // False if the queue was closed; the item is then dropped.
  bool push(Item item) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [this] { return items_.size() < capacity_ || is_closed_; });
    if (is_closed_) return false;
    items_.push_back(std::move(item));
    lock.unlock();
    not_empty_.notify_one();
    return true;
  }

  std::optional<Item> pop() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return !items_.empty() || is_closed_; });
    if (items_.empty()) return std::nullopt;
    Item item = std::move(items_.front());
    items_.pop_front();
    lock.unlock();
    not_full_.notify_one();
    return item;
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
    }
    not_full_.notify_all();
    not_empty_.notify_all();
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::deque<Item> items_;
  bool is_closed_ = false;
};

}  // namespace assay
