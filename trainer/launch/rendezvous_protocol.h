// What launchers say to one another, one JSON object a line, and who stands where. Pure: no socket.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/launch/rendezvous.h"

namespace assay::launch {

inline constexpr int64_t kProtocolVersion = 1;

// A launcher that wants to take part.
struct Hello {
  int64_t protocol = kProtocolVersion;
  std::string run_id;
  std::string build;
  std::string host;
  int64_t num_nodes = 1;
  int64_t node_rank = -1;  // -1: any
  int64_t num_local_ranks = 1;
};
Hello hello_of(const RendezvousRequest& request);

enum class MessageKind {
  kHello,    // first line of a client
  kReady,    // the client wants its place in attempt `number`
  kPlace,    // the server's answer: `place` in attempt `number`
  kRefused,  // the server will not have this client: `text`
  kBusy,     // not now, the client may ask again: `text`
  kBeat,     // sign of life
  kEvent,    // `event` of attempt `number`
  kBye,      // a good end: what follows is no loss
};

struct Message {
  MessageKind kind = MessageKind::kBeat;
  int64_t number = 0;
  std::string text = {};
  Hello hello = {};
  NodePlace place = {};
  NodeEvent event = {};
};

// Ends in '\n'. A text too long for a line of LineConnection is cut, which is better than a
// connection that the peer closes.
std::string to_line(const Message& message);
// Throws LaunchError saying what is wrong: any bytes may arrive.
Message message_from_line(const std::string& line);

// A wish to stop or kill concerns the job, the rest only the attempt that it was told in.
bool outlives_attempt(NodeEventKind kind);

// The nodes of a job while they gather. Thread-compatible.
class NodeTable {
 public:
  // `own`: the serving node, which is node 0.
  explicit NodeTable(const Hello& own);

  // Why this node cannot take part, naming both values; nothing if it can. `address`: of the node.
  struct Refusal {
    std::string text;
    bool is_same_job = false;  // the job cannot start as it was given; else a stranger
  };
  std::optional<Refusal> refusal(const Hello& hello, const std::string& address) const;

  int64_t add(const Hello& hello, const std::string& address);  // a key for remove and place
  void remove(int64_t key);
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  bool is_complete() const { return size() >= own_.num_nodes; }
  // Final order: given node ranks first, then the others by arrival. Once, when complete.
  void assign_ranks();

  NodePlace place(int64_t key) const;  // master_* are the caller's
  NodePlace own_place() const { return place(0); }
  std::string name(int64_t key) const;  // "node 1 (host b, 10.0.0.2)"
  std::string gathered_text() const;    // "node 0 (host a), host b (10.0.0.2)": for messages

 private:
  struct Entry {
    int64_t key = 0;
    Hello hello;
    std::string address;
    int64_t group_rank = -1;
  };
  const Entry& entry(int64_t key) const;
  Hello own_;
  std::vector<Entry> entries_;
  int64_t next_key_ = 1;
};

}  // namespace assay::launch
