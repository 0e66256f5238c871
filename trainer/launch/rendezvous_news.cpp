#include "trainer/launch/rendezvous_news.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <sys/eventfd.h>

#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

namespace assay::launch {
namespace {

int new_event_fd() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) throw LaunchError(cat("cannot make an event descriptor: ", std::strerror(errno)));
  return fd;
}

// Neither can fail in a way that matters: a full counter is readable, an empty one is cleared.
void raise(int fd) {
  const uint64_t one = 1;
  if (write(fd, &one, sizeof(one)) < 0) return;
}

void lower(int fd) {
  uint64_t count = 0;
  if (read(fd, &count, sizeof(count)) < 0) return;
}

}  // namespace

NewsQueue::NewsQueue() : fd_(new_event_fd()) {}
NewsQueue::~NewsQueue() { close(fd_); }

void NewsQueue::push(const NodeEvent& event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(event);
  raise(fd_);
}

std::optional<NodeEvent> NewsQueue::pop() {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return std::nullopt;
  NodeEvent event = events_.front();
  events_.pop_front();
  if (events_.empty()) lower(fd_);
  return event;
}

Waker::Waker() : fd_(new_event_fd()) {}
Waker::~Waker() { close(fd_); }
void Waker::wake() const { raise(fd_); }
void Waker::clear() const { lower(fd_); }

std::thread thread_without_signals(const std::function<void()>& work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(work);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace assay::launch
