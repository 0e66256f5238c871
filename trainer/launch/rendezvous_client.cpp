#include "trainer/launch/rendezvous_client.h"

#include <algorithm>
#include <chrono>

#include <poll.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "trainer/launch/address.h"
#include "trainer/launch/endpoint.h"

namespace assay::launch {
namespace {

constexpr double kConnectSeconds = 5;   // one try
constexpr double kRetrySeconds = 0.25;  // between two tries
constexpr double kFarewellSeconds = 2;  // for the last lines to get out
constexpr int kPollMs = 100;

}  // namespace

RendezvousClient::RendezvousClient(const RendezvousRequest& request) : request_(request) {}

RendezvousClient::~RendezvousClient() { stop_thread(); }

void RendezvousClient::stop_thread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  waker_.wake();
  thread_.join();
  is_stopping_ = false;
}

void RendezvousClient::check_cancelled() const {
  if (request_.is_cancelled && request_.is_cancelled()) {
    throw LaunchError("waiting for the other nodes was given up");
  }
}

bool RendezvousClient::try_connect(double deadline) {
  const double seconds = std::min(kConnectSeconds, std::max(0.1, deadline - monotonic_seconds()));
  int fd = -1;
  try {
    fd = connect_to(request_.host, request_.port, seconds, request_.local_addr);
  } catch (const LaunchError& error) {
    problem_ = error.what();
    return false;
  }
  stop_thread();
  line_ = std::make_unique<LineConnection>(fd);
  line_->send(to_line({.kind = MessageKind::kHello, .hello = hello_of(request_)}));
  line_->send(to_line({.kind = MessageKind::kReady, .number = 0}));
  over_because_.clear();
  has_ended_ = is_over_ = false;
  heard_at_ = beat_sent_at_ = monotonic_seconds();
  thread_ = thread_without_signals([this] { run(); });
  return true;
}

void RendezvousClient::connect_until(double deadline) {
  while (!try_connect(deadline)) {
    check_cancelled();
    if (monotonic_seconds() > deadline) throw LaunchError(given_up_text());
    std::this_thread::sleep_for(std::chrono::duration<double>(kRetrySeconds));
  }
}

std::string RendezvousClient::given_up_text() const {
  return cat("no launcher took this node in at ", endpoint_text(request_.host, request_.port),
             " within ", duration_text(request_.join_timeout_seconds), ": ", problem_,
             ". Fix: start assay launch on that host too and check --rdzv-endpoint and the "
             "network, or raise --rdzv-conf join_timeout");
}

NodePlace RendezvousClient::meet(int64_t attempt, const std::function<int64_t()>&) {
  const double deadline = monotonic_seconds() + request_.join_timeout_seconds;
  if (attempt == 0) {
    connect_until(deadline);
  } else {
    const std::lock_guard lock(mutex_);
    line_->send(to_line({.kind = MessageKind::kReady, .number = attempt}));
    waker_.wake();
  }
  while (true) {
    check_cancelled();
    std::unique_lock lock(mutex_);
    if (place_ && place_attempt_ >= attempt) return *place_;
    if (!refused_.empty()) throw LaunchError(refused_);
    if (is_over_) {
      problem_ = busy_.empty() ? over_because_ : busy_;
      if (attempt > 0) throw LaunchError(cat("lost the serving node: ", problem_));
      lock.unlock();
      if (monotonic_seconds() > deadline) throw LaunchError(given_up_text());
      std::this_thread::sleep_for(std::chrono::duration<double>(kRetrySeconds));
      connect_until(deadline);
      continue;
    }
    if (monotonic_seconds() > deadline) {
      problem_ = busy_.empty() ? "the other nodes did not all come" : busy_;
      throw LaunchError(given_up_text());
    }
    changed_.wait_for(lock, std::chrono::milliseconds(kPollMs));
  }
}

void RendezvousClient::run() {
  double stop_at = 0;
  while (true) {
    pollfd sockets[] = {{waker_.fd(), POLLIN, 0}, {-1, POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      sockets[1].fd = line_->fd();
      if (line_->has_output()) sockets[1].events |= POLLOUT;
    }
    poll(sockets, 2, kPollMs);
    waker_.clear();
    const std::lock_guard lock(mutex_);
    const double now = monotonic_seconds();
    line_->receive();
    while (const std::optional<std::string> line = line_->next_line()) {
      try {
        handle(message_from_line(*line));
      } catch (const LaunchError& error) {
        line_->close_because(cat("what answers there is no launcher: ", error.what()));
        break;
      }
    }
    if (now - beat_sent_at_ >= request_.keep_alive_seconds) {
      line_->send(to_line({.kind = MessageKind::kBeat}));
      beat_sent_at_ = now;
    }
    watch_silence(now);
    line_->flush();
    if (is_stopping_ && stop_at == 0) stop_at = now + kFarewellSeconds;
    if (is_stopping_ && (!line_->has_output() || now > stop_at)) line_->close_because("this end");
    if (!line_->is_open()) note_closed();
    changed_.notify_all();
    if (is_over_) return;
  }
}

void RendezvousClient::handle(const Message& message) {
  heard_at_ = monotonic_seconds();
  switch (message.kind) {
    case MessageKind::kPlace:
      place_ = message.place;
      place_attempt_ = message.number;
      break;
    case MessageKind::kRefused:
      refused_ = message.text;
      break;
    case MessageKind::kBusy:
      busy_ = message.text;
      break;
    case MessageKind::kEvent:
      take_event(message.event, message.number);
      break;
    case MessageKind::kBye:
      has_ended_ = true;
      break;
    case MessageKind::kBeat:
      break;
    case MessageKind::kHello:
    case MessageKind::kReady:
      throw LaunchError("it speaks as a client does");
  }
}

void RendezvousClient::take_event(const NodeEvent& event, int64_t attempt) {
  if (attempt < place_attempt_ && !outlives_attempt(event.kind)) return;
  if (event.kind == NodeEventKind::kEnd) has_ended_ = true;
  // A serving node that gives up before the first meeting is what meet() reports.
  if (place_attempt_ < 0 && event.kind == NodeEventKind::kLost) {
    if (refused_.empty()) refused_ = cat("lost ", event.text);
    return;
  }
  news_.push(event);
}

void RendezvousClient::watch_silence(double now) {
  const double limit =
      request_.keep_alive_seconds * static_cast<double>(request_.keep_alive_misses);
  if (now - heard_at_ <= limit) return;
  line_->close_because(cat("it was silent for ", duration_text(limit)));
}

void RendezvousClient::note_closed() {
  is_over_ = true;
  over_because_ = line_->problem();
  if (place_attempt_ < 0 || has_ended_ || is_stopping_) return;
  has_ended_ = true;
  news_.push({NodeEventKind::kLost, 0, 0,
              cat("node 0 (serving at ", endpoint_text(request_.host, request_.port),
                  "): ", over_because_)});
}

void RendezvousClient::tell(const NodeEvent& event) {
  const std::lock_guard lock(mutex_);
  if (is_over_) return;
  line_->send(to_line({.kind = MessageKind::kEvent,
                       .number = std::max<int64_t>(place_attempt_, 0),
                       .event = event}));
  waker_.wake();
}

}  // namespace assay::launch
