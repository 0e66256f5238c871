// A thread for calls that may never return: c10d's store waits for ever for a server whose process
// is stopped.
#pragma once

#include <functional>
#include <memory>

namespace assay::distributed {

// Thread-safe. Calls are made one after another.
class StoreLane {
 public:
  StoreLane();
  ~StoreLane();  // does not wait for a call that hangs; its thread ends with it
  StoreLane(const StoreLane&) = delete;
  StoreLane& operator=(const StoreLane&) = delete;

  // Makes the call and rethrows what it throws. Throws LaunchError after `limit_seconds` during
  // which this process ran (a suspended one loses nothing); every later call then throws at once.
  // `work` may still run by then: it must own what it uses.
  void run(std::function<void()> work, double limit_seconds);
  void give_up();  // the call that runs and every later one throw at once

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace assay::distributed
