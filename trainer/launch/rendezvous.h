// How launchers on several hosts find one another and stay in step: one serves at the endpoint, the
// others connect; each gets its place, and what happens on one node is told to all. Torch-free.
//
// No authentication: for trusted networks only (docs/decisions/0006-launcher.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace assay::launch {

struct RendezvousRequest {
  std::string host;  // of the endpoint: name or numeric address, no brackets
  int64_t port = 29400;
  std::string run_id = "none";  // equal on all nodes
  int64_t num_nodes = 1;
  std::optional<int64_t> node_rank;  // none: by order of arrival, the serving node is 0
  int64_t num_local_ranks = 1;
  std::string build;  // version and commit; equal on all nodes
  double join_timeout_seconds = 600;
  double keep_alive_seconds = 5;
  int64_t keep_alive_misses = 3;  // a node silent for that many intervals is lost
  std::string local_addr;         // of this host, for the others; empty: as they reach it
  // Asked several times a second while meet() blocks; true makes it throw. May be empty.
  std::function<bool()> is_cancelled;
};

// Where this node stands in one attempt of the group.
struct NodePlace {
  int64_t group_rank = 0;  // of this node
  int64_t num_nodes = 1;
  int64_t first_rank = 0;  // of this node's ranks
  int64_t world_size = 1;
  std::string master_addr;  // node 0, as the other nodes reach it
  int64_t master_port = 0;
};

enum class NodeEventKind {
  kFailed,   // a rank failed on a node; `text` is that node's report (JSON of the caller)
  kEnded,    // all ranks of a node have ended; `text` is their outcome (JSON of the caller)
  kStop,     // a node was asked to stop; `number` is the signal
  kKill,     // a node was asked a second time: all ranks are killed; `number` is the signal
  kLost,     // a node is gone; `text` names it
  kRestart,  // node 0 has decided that the group starts again as attempt `number`
  kEnd,      // node 0 has decided that the job ends with exit code `number`
};
struct NodeEvent {
  NodeEventKind kind = NodeEventKind::kFailed;
  int64_t node = 0;  // group rank of where it happened
  int64_t number = 0;
  std::string text;
};

// Main thread only; a thread of its own inside keeps the connections alive.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // Meets the other nodes for attempt 0, 1, ... and returns this node's place. Node 0 calls
  // `open_master` to make the socket of the ranks' store and passes its port to all. Throws
  // LaunchError naming nodes and values (timed out, another run id, build, number of nodes, or a
  // node rank twice).
  virtual NodePlace meet(int64_t attempt, const std::function<int64_t()>& open_master) = 0;
  // Tells all other nodes.
  virtual void tell(const NodeEvent& event) = 0;
  // What another node has told, in order; nothing if there is no news. Never blocks.
  virtual std::optional<NodeEvent> next_event() = 0;
  virtual int event_fd() const = 0;    // readable when there is news: for poll()
  virtual bool is_server() const = 0;  // group rank 0
};

// Serves if the endpoint's address belongs to this host and can be bound (and node_rank, if given,
// is 0), connects otherwise, trying again until the time-out.
std::unique_ptr<Rendezvous> open_rendezvous(const RendezvousRequest& request);

}  // namespace assay::launch
