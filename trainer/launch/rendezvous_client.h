// The connecting side of a rendezvous: every node but 0.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "trainer/launch/line_connection.h"
#include "trainer/launch/rendezvous.h"
#include "trainer/launch/rendezvous_news.h"
#include "trainer/launch/rendezvous_protocol.h"

namespace assay::launch {

// Public methods: main thread only. One thread of its own keeps the connection alive; it waits in
// poll() and ends in the destructor or with the connection.
class RendezvousClient final : public Rendezvous {
 public:
  explicit RendezvousClient(const RendezvousRequest& request);
  ~RendezvousClient() override;  // sends what is still to be sent, for up to 2 s

  NodePlace meet(int64_t attempt, const std::function<int64_t()>& open_master) override;
  void tell(const NodeEvent& event) override;
  std::optional<NodeEvent> next_event() override { return news_.pop(); }
  int event_fd() const override { return news_.fd(); }
  bool is_server() const override { return false; }

 private:
  void connect_until(double deadline);
  bool try_connect(double deadline);
  void run();
  void handle(const Message& message);
  void take_event(const NodeEvent& event, int64_t attempt);
  void watch_silence(double now);
  void note_closed();
  void stop_thread();
  void check_cancelled() const;  // not under mutex_: what it asks may tell
  std::string given_up_text() const;

  const RendezvousRequest request_;
  NewsQueue news_;
  Waker waker_;
  std::string problem_;  // of the last attempt to connect
  std::mutex mutex_;     // guards all below
  std::condition_variable changed_;
  std::unique_ptr<LineConnection> line_;
  std::string refused_;
  std::string busy_;
  std::optional<NodePlace> place_;
  int64_t place_attempt_ = -1;
  double heard_at_ = 0;
  double beat_sent_at_ = 0;
  bool has_ended_ = false;  // kEnd or a good-bye came: the end of the connection is no loss
  bool is_stopping_ = false;
  bool is_over_ = true;  // no connection
  std::string over_because_;
  std::thread thread_;
};

}  // namespace assay::launch
