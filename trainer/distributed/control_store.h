// The job's key-value store, for what ranks say to one another besides tensors: who is there, what
// was decided, where each one is, what went wrong. Never used on the step path.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <c10/util/intrusive_ptr.h>

#include "trainer/launch/rank_env.h"

namespace c10d {
class Store;
}

namespace assay::distributed {

class StoreLane;

// Thread-safe, but calls of one connection wait for each other; a thread of its own works on a
// clone(). Every call throws LaunchError when the store is gone or does not answer in time, which
// means that rank 0 (or the launcher that owns the store) is gone or stopped; later calls then
// throw at once.
class ControlStore {
 public:
  // Rank 0 serves (unless a launcher's agent does) on the socket that its launcher handed down, or
  // on one of its own; the others connect. Blocks for at most `timeout_seconds`.
  static ControlStore open(const launch::RankEnv& env, double timeout_seconds);
  ControlStore(c10::intrusive_ptr<c10d::Store> store, double answer_seconds);
  ControlStore(const ControlStore&);  // the same connection
  ~ControlStore();

  ControlStore clone() const;                            // a connection of its own
  ControlStore with_limit(double answer_seconds) const;  // the same connection
  void give_up();                                        // a call that waits throws at once
  const c10::intrusive_ptr<c10d::Store>& raw() const { return store_; }

  void set(const std::string& key, const std::string& value);
  std::optional<std::string> find(const std::string& key);
  int64_t add(const std::string& key, int64_t amount);
  void append(const std::string& key, const std::string& text);
  void remove(const std::string& key);
  // Polls until the key is there, `is_over` says so, or the time is up; nothing then. Polling keeps
  // the connection free, so that no call of another thread waits behind this one.
  std::optional<std::string> wait_for(const std::string& key, double timeout_seconds,
                                      const std::function<bool()>& is_over = {});
  // Sets the key unless it is there; true if this call did.
  bool set_first(const std::string& key, const std::string& value);

 private:
  template <class Result>
  Result ask(std::function<Result(c10d::Store&)> question) const;

  c10::intrusive_ptr<c10d::Store> store_;
  std::shared_ptr<StoreLane> lane_;
  double answer_seconds_;
};

// The descriptor of a listening socket for the store, handed to rank 0 by its launcher.
inline constexpr const char* kStoreFdVariable = "ASSAY_STORE_FD";

}  // namespace assay::distributed
