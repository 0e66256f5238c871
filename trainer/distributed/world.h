// The ranks of a job as this one sees them: who is there, how they agree, and how tensors get from
// one to another. With one rank that no launcher started it is empty and costs nothing.
//
//   World world = World::join(rank_env, settings, record, page, log);   // all ranks, or
//   LaunchError const std::string decision = world.broadcast_text("start", is_root ? decide() :
//   ""); world.all_reduce(tensor); world.leave(); // all ranks are done
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "base/log.h"
#include "trainer/distributed/rank_record.h"
#include "trainer/launch/progress_page.h"
#include "trainer/launch/rank_env.h"

namespace c10d {
class ProcessGroup;
}

namespace assay::distributed {

struct WorldSettings {
  double join_timeout_seconds = 30;         // without a new rank arriving
  double collective_timeout_seconds = 600;  // ddp_timeout: one collective, one step's work
  double save_timeout_seconds = 3600;       // others wait for rank 0 to write a checkpoint
  // Ends this process from the watch's thread (exit code 5) with the reason; does not return.
  std::function<void(const std::string& message)> end_process;
};

enum class Reduction { kSum, kMax };

// False for a process that nobody started as one of several: it needs no store and no group.
bool needs_world(const launch::RankEnv& env);

// Main thread only, unless said otherwise.
class World {
 public:
  // Meets the other ranks and checks that programs, world size and configuration agree. Opens no
  // process group yet. Throws LaunchError naming ranks and values, within the join time-out.
  static World join(const launch::RankEnv& env, const WorldSettings& settings,
                    const RankRecord& own, launch::ProgressPage& page, Logger& log);
  static World alone();  // one rank that nobody else knows of
  // One process in the role of a rank: size() and rank() are what is asked for, collectives return
  // at once, and whatever ranks would say to one another is what this one says. `page` is borrowed.
  static World in_role(int64_t rank, int64_t size, launch::ProgressPage& page);
  World(World&&) noexcept;
  ~World();  // never waits for the others

  int64_t rank() const;
  int64_t size() const;
  bool is_root() const { return rank() == 0; }
  // False: one rank alone, without store and group; every call below is then local.
  bool is_distributed() const;
  const std::vector<RankRecord>& ranks() const;

  // What one rank knows, for all. `topic` names the meeting in messages. Throws LaunchError naming
  // who did not come within the time-out (0: the join time-out, once connected that of a
  // collective), with step and phase.
  std::string broadcast_text(const std::string& topic, const std::string& text_of_root,
                             double timeout_seconds = 0);
  std::vector<std::string> gather_texts(const std::string& topic, const std::string& text,
                                        double timeout_seconds = 0);  // by rank, on every rank
  void meet(const std::string& topic, double timeout_seconds = 0);

  // Runs `work` here and goes on only if it went well on every rank: the rank that failed rethrows
  // its own error, the others throw one of the same exit code that names it. `root_only`: the
  // others just wait for rank 0.
  enum class Who { kEveryRank, kRootOnly };
  void agree(const std::string& topic, Who who, const std::function<void()>& work,
             double timeout_seconds = 0);

  // Connects the process group: NCCL where it is wanted, Gloo otherwise. `backend`: auto, gloo,
  // nccl. Collective. Throws LaunchError naming addresses that cannot reach one another.
  void connect(const std::string& backend, const c10::Device& device);
  std::string backend() const;  // "nccl", "gloo"; "none" before connect and when alone
  const c10::intrusive_ptr<c10d::ProcessGroup>& group() const;

  // In place; on return the result may be used on the tensor's current stream.
  void all_reduce(at::Tensor tensor, Reduction reduction = Reduction::kSum);
  // Starts a sum in place; the result is there once the returned call has been made.
  std::function<void()> start_all_reduce(at::Tensor tensor);
  void broadcast(const std::vector<at::Tensor>& tensors, int64_t root = 0);
  // From one rank to one other, on whatever device; both block until it is done.
  void send(const at::Tensor& tensor, int64_t to);
  void receive(const at::Tensor& tensor, int64_t from);

  // Says to the other ranks and to rank 0's log why this rank ends: the first one who calls it is
  // the cause. Never throws.
  void report_failure(const std::string& message, int exit_code) noexcept;
  // Adds to an error of this rank what the others know: who failed first, or who does not answer.
  std::string explain(const std::string& message) noexcept;

  // For the watch over a step that hangs: collectives that this rank has started, and the elements
  // of the last one (with those that the plan says). Called from autograd's thread too.
  void count_collective(int64_t elements, int64_t planned_elements);
  void begin_step();

  // After a failure: rank 0 keeps the store open for a moment, so that the others can read why.
  void linger() noexcept;

  void leave();  // all ranks end together, so that rank 0 can close the store
 private:
  struct Impl;
  explicit World(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::distributed
