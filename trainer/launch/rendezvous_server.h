// The serving side of a rendezvous: node 0.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/launch/line_connection.h"
#include "trainer/launch/rendezvous.h"
#include "trainer/launch/rendezvous_news.h"
#include "trainer/launch/rendezvous_protocol.h"

namespace assay::launch {

// Public methods: main thread only. One thread of its own serves the connections; it waits in
// poll() and ends in the destructor.
class RendezvousServer final : public Rendezvous {
 public:
  // A connection that has not said who it is within that time goes.
  static constexpr double kHelloSeconds = 5;

  // Takes over a listening socket.
  RendezvousServer(const RendezvousRequest& request, int listener,
                   double hello_seconds = kHelloSeconds);
  ~RendezvousServer() override;  // sends what is still to be sent, for up to 2 s

  NodePlace meet(int64_t attempt, const std::function<int64_t()>& open_master) override;
  void tell(const NodeEvent& event) override;
  std::optional<NodeEvent> next_event() override { return news_.pop(); }
  int event_fd() const override { return news_.fd(); }
  bool is_server() const override { return true; }

 private:
  struct Client {
    std::unique_ptr<LineConnection> line;
    std::string address;
    std::string own_address;
    double accepted_at = 0;
    double heard_at = 0;
    std::optional<int64_t> key;  // in the table, once it has said hello
    int64_t ready_attempt = -1;
    bool is_leaving = false;  // what is queued is sent, then the peer closes
    double leaves_at = 0;     // when this side closes in any case
  };

  void serve();
  void poll_sockets();
  void accept_clients();
  void handle_lines(Client& client);
  void handle(Client& client, const Message& message);
  void welcome(Client& client, const Hello& hello);
  void refuse(Client& client, MessageKind kind, const std::string& text);
  void let_go(Client& client);
  void watch_silence(Client& client, double now);
  void note_closed(Client& client);
  void relay(const NodeEvent& event, int64_t attempt, const Client* except);
  bool is_everybody_ready(int64_t attempt) const;
  std::string advertised_address() const;
  std::string address_for(const Client& client, const std::string& advertised) const;
  [[noreturn]] void give_up(const std::string& reason);
  std::string missing_text(int64_t attempt) const;

  const RendezvousRequest request_;
  const int listener_;
  const double hello_seconds_;
  NewsQueue news_;
  Waker waker_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  NodeTable table_;
  std::vector<Client> clients_;
  std::vector<std::string> turned_away_;  // texts of refusals, for messages
  std::string fatal_;                     // why no meeting can be held any more
  int64_t attempt_ = -1;                  // of the last meeting that was held
  double beat_sent_at_ = 0;
  bool has_ended_ = false;    // kEnd was told
  bool is_stopping_ = false;  // the destructor waits
  std::thread thread_;
};

}  // namespace assay::launch
