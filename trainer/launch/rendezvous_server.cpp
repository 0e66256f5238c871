#include "trainer/launch/rendezvous_server.h"

#include <algorithm>
#include <chrono>
#include <sys/socket.h>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "trainer/launch/address.h"

namespace assay::launch {
namespace {

constexpr double kFarewellSeconds = 2;   // for the last lines to get out
constexpr size_t kMaxStrangers = 256;    // connections that have not said hello
constexpr size_t kMaxRefusalsKept = 16;  // in the message of a time-out
constexpr int kPollMs = 100;

}  // namespace

RendezvousServer::RendezvousServer(const RendezvousRequest& request, int listener,
                                   double hello_seconds)
    : request_(request),
      listener_(listener),
      hello_seconds_(hello_seconds),
      table_(hello_of(request)) {
  fcntl(listener_, F_SETFL, fcntl(listener_, F_GETFL) | O_NONBLOCK);
  thread_ = thread_without_signals([this] { serve(); });
}

RendezvousServer::~RendezvousServer() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    if (!has_ended_) {
      const std::string text = cat(table_.name(0), ": its launcher has given up");
      relay({NodeEventKind::kLost, 0, 0, text}, std::max<int64_t>(attempt_, 0), nullptr);
    }
    for (Client& client : clients_) {
      client.line->send(to_line({.kind = MessageKind::kBye}));
      let_go(client);
    }
  }
  waker_.wake();
  thread_.join();
  close(listener_);
}

void RendezvousServer::serve() {
  double stop_at = 0;
  while (true) {
    poll_sockets();
    const std::lock_guard lock(mutex_);
    const double now = monotonic_seconds();
    if (!is_stopping_) accept_clients();
    const bool is_beat_due = now - beat_sent_at_ >= request_.keep_alive_seconds;
    if (is_beat_due) beat_sent_at_ = now;
    for (size_t i = 0; i < clients_.size(); ++i) {
      Client& client = clients_[i];
      client.line->receive();
      handle_lines(client);
      if (is_beat_due && client.key) client.line->send(to_line({.kind = MessageKind::kBeat}));
      watch_silence(client, now);
      client.line->flush();
      if (client.is_leaving && !client.line->has_output()) client.line->finish_sending();
      if (!client.line->is_open()) note_closed(client);
    }
    std::erase_if(clients_, [](const Client& client) { return !client.line->is_open(); });
    changed_.notify_all();
    if (!is_stopping_) continue;
    if (stop_at == 0) stop_at = now + kFarewellSeconds;
    if (clients_.empty() || now > stop_at) return;
  }
}

void RendezvousServer::poll_sockets() {
  std::vector<pollfd> sockets = {{waker_.fd(), POLLIN, 0}};
  {
    const std::lock_guard lock(mutex_);
    if (!is_stopping_) sockets.push_back({listener_, POLLIN, 0});
    for (const Client& client : clients_) {
      const int events = POLLIN | (client.line->has_output() ? POLLOUT : 0);
      sockets.push_back({client.line->fd(), static_cast<short>(events), 0});
    }
  }
  poll(sockets.data(), sockets.size(), kPollMs);
  waker_.clear();
}

void RendezvousServer::accept_clients() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    const auto num_strangers = static_cast<size_t>(std::count_if(
        clients_.begin(), clients_.end(), [](const Client& client) { return !client.key; }));
    auto line = std::make_unique<LineConnection>(fd);
    if (num_strangers >= kMaxStrangers) continue;  // closes it
    Client client;
    client.address = line->peer_address();
    client.own_address = line->own_address();
    client.accepted_at = client.heard_at = monotonic_seconds();
    client.line = std::move(line);
    clients_.push_back(std::move(client));
  }
}

// What a client sends after it was told to go is not even looked at: it may be without end.
void RendezvousServer::handle_lines(Client& client) {
  while (!client.is_leaving) {
    const std::optional<std::string> line = client.line->next_line();
    if (!line) return;
    try {
      handle(client, message_from_line(*line));
    } catch (const LaunchError& error) {
      client.line->close_because(error.what());
      return;
    }
  }
}

void RendezvousServer::handle(Client& client, const Message& message) {
  client.heard_at = monotonic_seconds();
  if (!client.key) {
    if (message.kind != MessageKind::kHello) throw LaunchError("it did not say hello first");
    return welcome(client, message.hello);
  }
  if (message.kind == MessageKind::kReady) {
    client.ready_attempt = std::max(client.ready_attempt, message.number);
  } else if (message.kind == MessageKind::kEvent && attempt_ >= 0) {
    NodeEvent event = message.event;
    event.node = table_.place(*client.key).group_rank;
    if (message.number < attempt_ && !outlives_attempt(event.kind)) return;
    news_.push(event);
    relay(event, attempt_, &client);
  }
}

void RendezvousServer::welcome(Client& client, const Hello& hello) {
  if (attempt_ >= 0 || has_ended_) {
    return refuse(client, MessageKind::kBusy,
                  cat("a job with --rdzv-id ", quoted(request_.run_id), " and all its ",
                      request_.num_nodes, " nodes already runs at this endpoint"));
  }
  if (const auto refusal = table_.refusal(hello, client.address)) {
    if (turned_away_.size() < kMaxRefusalsKept) turned_away_.push_back(refusal->text);
    if (refusal->is_same_job) {
      fatal_ = refusal->text;
      for (Client& other : clients_) {
        if (other.key) refuse(other, MessageKind::kRefused, refusal->text);
      }
    }
    return refuse(client, MessageKind::kRefused, refusal->text);
  }
  if (table_.is_complete()) {
    return refuse(client, MessageKind::kBusy,
                  cat("all ", request_.num_nodes, " nodes are there: ", table_.gathered_text()));
  }
  client.key = table_.add(hello, client.address);
}

void RendezvousServer::refuse(Client& client, MessageKind kind, const std::string& text) {
  client.line->send(to_line({.kind = kind, .text = text}));
  let_go(client);
}

// Closing at once could drop the last line on its way, where the peer has sent more meanwhile.
void RendezvousServer::let_go(Client& client) {
  if (client.is_leaving) return;
  client.is_leaving = true;
  client.leaves_at = monotonic_seconds() + kFarewellSeconds;
}

void RendezvousServer::watch_silence(Client& client, double now) {
  if (!client.key && !client.is_leaving && now - client.accepted_at > hello_seconds_) {
    client.line->close_because("it did not say hello");
  }
  if (client.is_leaving && now > client.leaves_at) client.line->close_because("it was let go");
  const double limit =
      request_.keep_alive_seconds * static_cast<double>(request_.keep_alive_misses);
  if (client.key && now - client.heard_at > limit) {
    client.line->close_because(cat("it was silent for ", duration_text(limit)));
  }
}

void RendezvousServer::note_closed(Client& client) {
  if (!client.key) return;
  const int64_t key = *std::exchange(client.key, std::nullopt);
  if (attempt_ < 0) return table_.remove(key);  // it may come back
  if (has_ended_ || is_stopping_) return;
  const NodeEvent event{NodeEventKind::kLost, table_.place(key).group_rank, 0,
                        cat(table_.name(key), ": ", client.line->problem())};
  fatal_ = cat("lost ", event.text);
  news_.push(event);
  relay(event, attempt_, &client);
}

void RendezvousServer::relay(const NodeEvent& event, int64_t attempt, const Client* except) {
  const Message message{.kind = MessageKind::kEvent, .number = attempt, .event = event};
  const std::string line = to_line(message);
  for (Client& client : clients_) {
    if (&client != except && client.key) client.line->send(line);
  }
  waker_.wake();
}

bool RendezvousServer::is_everybody_ready(int64_t attempt) const {
  const auto ready = std::count_if(clients_.begin(), clients_.end(), [&](const Client& client) {
    return client.key && !client.is_leaving && client.ready_attempt >= attempt;
  });
  return table_.is_complete() && ready + 1 >= request_.num_nodes;
}

std::string RendezvousServer::advertised_address() const {
  if (!request_.local_addr.empty()) return request_.local_addr;
  std::string found;
  for (const Client& client : clients_) {
    if (!client.key) continue;
    if (!is_loopback(client.own_address)) return client.own_address;
    if (found.empty()) found = client.own_address;
  }
  return found;
}

// Its ranks come the way their launcher came, but loopback leads no answer back from elsewhere.
std::string RendezvousServer::address_for(const Client& client,
                                          const std::string& advertised) const {
  const bool is_told = !request_.local_addr.empty() || is_loopback(client.own_address);
  return is_told ? advertised : client.own_address;
}

std::string RendezvousServer::missing_text(int64_t attempt) const {
  std::string text = cat("not all ", request_.num_nodes, " nodes came to ",
                         endpoint_text(request_.host, request_.port), " for attempt ", attempt,
                         " within ", duration_text(request_.join_timeout_seconds));
  if (attempt_ >= 0) {
    std::vector<std::string> late;
    for (const Client& client : clients_) {
      if (client.key && client.ready_attempt < attempt) late.push_back(table_.name(*client.key));
    }
    return cat(text, "; ", late.size(), " did not: ", join(late, ", "),
               ". Fix: see what their launchers print, or raise --rdzv-conf join_timeout");
  }
  text += cat("; there are ", table_.size(), ": ", table_.gathered_text());
  if (!turned_away_.empty()) text += cat("; turned away: ", join(turned_away_, "; "));
  return cat(text, ". Fix: start assay launch with the same --rdzv-endpoint on the others, or ",
             "raise --rdzv-conf join_timeout");
}

// The others learn why, not only that this end is gone.
void RendezvousServer::give_up(const std::string& reason) {
  for (Client& client : clients_) {
    if (client.key) refuse(client, MessageKind::kRefused, reason);
  }
  waker_.wake();
  throw LaunchError(reason);
}

NodePlace RendezvousServer::meet(int64_t attempt, const std::function<int64_t()>& open_master) {
  const double deadline = monotonic_seconds() + request_.join_timeout_seconds;
  std::unique_lock lock(mutex_);
  while (!is_everybody_ready(attempt)) {
    if (!fatal_.empty()) throw LaunchError(fatal_);
    if (monotonic_seconds() > deadline) give_up(missing_text(attempt));
    changed_.wait_for(lock, std::chrono::milliseconds(kPollMs));
    lock.unlock();  // what is asked may tell
    if (request_.is_cancelled && request_.is_cancelled()) {
      throw LaunchError("waiting for the other nodes was given up");
    }
    lock.lock();
  }
  if (attempt_ < 0) table_.assign_ranks();
  NodePlace own = table_.own_place();
  own.master_addr = advertised_address();
  own.master_port = open_master();
  attempt_ = attempt;
  for (Client& client : clients_) {
    if (!client.key) continue;
    NodePlace place = table_.place(*client.key);
    place.master_addr = address_for(client, own.master_addr);
    place.master_port = own.master_port;
    client.line->send(to_line({.kind = MessageKind::kPlace, .number = attempt, .place = place}));
  }
  waker_.wake();
  return own;
}

void RendezvousServer::tell(const NodeEvent& event) {
  const std::lock_guard lock(mutex_);
  if (event.kind == NodeEventKind::kEnd) has_ended_ = true;
  relay(event, std::max<int64_t>(attempt_, 0), nullptr);
}

}  // namespace assay::launch
