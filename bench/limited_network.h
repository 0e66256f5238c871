// Hosts of a benchmark: one network namespace a rank, joined by a bridge, each with a limited way
// out. Needs root, `ip` and `tc`. Header-only: used by one benchmark.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "platform/child.h"

namespace assay::bench {

// Main thread only. Everything is taken down on destruction.
class LimitedNetwork {
 public:
  // `mbit` per second that each host may send.
  LimitedNetwork(int64_t hosts, int64_t mbit) : prefix_(cat("sc", getpid() % 100000)) {
    try {
      run({"ip", "link", "add", bridge(), "type", "bridge"});
      run({"ip", "link", "set", bridge(), "up"});
      for (int64_t host = 0; host < hosts; ++host) add_host(host, mbit);
    } catch (...) {
      remove();
      throw;
    }
  }
  ~LimitedNetwork() { remove(); }
  LimitedNetwork(const LimitedNetwork&) = delete;
  LimitedNetwork& operator=(const LimitedNetwork&) = delete;

  static std::string address(int64_t host) { return cat("10.213.77.", host + 1); }
  // Words to put before a command so that it runs on that host.
  std::vector<std::string> on_host(int64_t host) const {
    return {"/usr/bin/env", "ip", "netns", "exec", space(host)};
  }

 private:
  std::string bridge() const { return prefix_ + "b"; }
  std::string space(int64_t host) const { return cat(prefix_, "n", host); }
  std::string outer(int64_t host) const { return cat(prefix_, "o", host); }

  void add_host(int64_t host, int64_t mbit) {
    ++hosts_;
    run({"ip", "netns", "add", space(host)});
    run({"ip", "link", "add", outer(host), "type", "veth", "peer", "name", "eth0", "netns",
         space(host)});
    run({"ip", "link", "set", outer(host), "master", bridge(), "up"});
    run({"ip", "-n", space(host), "link", "set", "lo", "up"});
    run({"ip", "-n", space(host), "addr", "add", address(host) + "/24", "dev", "eth0"});
    run({"ip", "-n", space(host), "link", "set", "eth0", "up"});
    // What may go at once: as little as the kernel can time, so that short messages are slowed down
    // as long ones are, but two of its largest packets on a fast line. Packets that do not fit it
    // cuts up, which on fast lines keeps the CPU busier than the line.
    run({"tc", "-n", space(host), "qdisc", "add", "dev", "eth0", "root", "tbf", "rate",
         cat(mbit, "mbit"), "burst", mbit < 500 ? "64kb" : "130kb", "latency", "400ms"});
  }

  void remove() {
    for (int64_t host = 0; host < hosts_; ++host) {
      quietly({"ip", "netns", "del", space(host)});
      quietly({"ip", "link", "del", outer(host)});
    }
    quietly({"ip", "link", "del", bridge()});
  }

  static platform::ChildResult quietly(std::vector<std::string> words) {
    words.insert(words.begin(), "/usr/bin/env");
    return platform::run_and_capture(words, 20);
  }
  static void run(const std::vector<std::string>& words) {
    const platform::ChildResult result = quietly(words);
    if (result.start_error.empty() && !result.is_timed_out && result.exit_code == 0) return;
    throw CouldNotRunError(cat("cannot set up the hosts: ", join(words, " "), ": ",
                               result.start_error, trimmed(result.output),
                               ". Fix: run as root on a machine with iproute2"));
  }

  std::string prefix_;
  int64_t hosts_ = 0;
};

}  // namespace assay::bench
