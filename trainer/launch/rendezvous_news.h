// What the thread of a rendezvous hands to the main thread. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "trainer/launch/rendezvous.h"

namespace assay::launch {

class NewsQueue {
 public:
  NewsQueue();  // throws LaunchError
  ~NewsQueue();
  NewsQueue(const NewsQueue&) = delete;
  NewsQueue& operator=(const NewsQueue&) = delete;

  void push(const NodeEvent& event);
  std::optional<NodeEvent> pop();
  int fd() const { return fd_; }

 private:
  int fd_;  // eventfd, readable while events_ is not empty
  std::mutex mutex_;
  std::deque<NodeEvent> events_;  // guarded by mutex_
};

// Wakes a thread out of poll(). Thread-safe.
class Waker {
 public:
  Waker();  // throws LaunchError
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;
  void wake() const;
  void clear() const;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// A thread that no signal is delivered to: signals are the main thread's.
std::thread thread_without_signals(const std::function<void()>& work);

}  // namespace assay::launch
