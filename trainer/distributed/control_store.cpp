#include "trainer/distributed/control_store.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "trainer/distributed/store_lane.h"
#include "trainer/launch/address.h"

namespace assay::distributed {
namespace {

using launch::address_of_socket;
using launch::endpoint_text;
using launch::host_name;
using launch::is_loopback;
using launch::listen_on;
using launch::local_address_towards;
using launch::port_of_socket;
using launch::without_brackets;

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

// The first line of a c10d message; the rest is a C++ stack.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::optional<int> inherited_socket() {
  const char* text = std::getenv(kStoreFdVariable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const auto fd = parse_int64(text);
  int is_listening = 0;
  socklen_t size = sizeof(is_listening);
  if (!fd || *fd < 3 || *fd > 1 << 20 ||
      getsockopt(static_cast<int>(*fd), SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0 ||
      is_listening == 0) {
    throw LaunchError(cat("environment variable ", kStoreFdVariable, " is ", quoted(text),
                          ", must be a listening socket of assay launch. Fix: unset it"));
  }
  return static_cast<int>(*fd);
}

int64_t store_port(const launch::RankEnv& env) {
  if (env.master_port > 0) return env.master_port;
  throw LaunchError(cat(env.source, " started ", env.world_size,
                        " ranks without saying where they meet: MASTER_PORT is not set. Fix: set "
                        "MASTER_ADDR and MASTER_PORT, or start with assay launch"));
}

// A job on one host needs no door to the outside.
int serving_socket(const launch::RankEnv& env, const std::string& host) {
  if (const auto fd = inherited_socket()) return *fd;
  const bool is_one_host = env.local_world_size == env.world_size;
  const bool is_ipv6 = host.find(':') != std::string::npos;
  if (is_loopback(host) || host == "localhost") {
    return listen_on(is_ipv6 ? "::1" : "127.0.0.1", store_port(env));
  }
  return listen_on(is_one_host ? local_address_towards(host, store_port(env)) : "",
                   store_port(env));
}

c10::intrusive_ptr<c10d::Store> connect(const launch::RankEnv& env, double timeout_seconds) {
  c10d::TCPStoreOptions options;
  options.waitWorkers = false;
  options.timeout = milliseconds_of(timeout_seconds);
  std::string host = without_brackets(env.master_addr);
  if (env.rank == 0 && !env.has_agent_store) {
    const int fd = serving_socket(env, host);
    host = address_of_socket(fd);
    options.isServer = true;
    options.masterListenFd = fd;
    options.port = static_cast<uint16_t>(port_of_socket(fd));
  } else {
    options.port = static_cast<uint16_t>(store_port(env));
  }
  try {
    return c10::make_intrusive<c10d::TCPStore>(host, options);
  } catch (const std::exception& error) {
    throw LaunchError(cat("rank ", env.rank, " (host ", host_name(), ") cannot reach rank 0 at ",
                          endpoint_text(host, options.port), " within ", timeout_seconds,
                          " s: ", first_line(error),
                          ". Fix: check that rank 0 runs, MASTER_ADDR, MASTER_PORT and firewalls"));
  }
}

}  // namespace

ControlStore ControlStore::open(const launch::RankEnv& env, double timeout_seconds) {
  // Keys of one attempt: an agent's store outlives the ranks.
  return ControlStore(c10::make_intrusive<c10d::PrefixStore>(cat("assay/", env.restart_count),
                                                             connect(env, timeout_seconds)),
                      timeout_seconds);
}

ControlStore::ControlStore(c10::intrusive_ptr<c10d::Store> store, double answer_seconds)
    : store_(std::move(store)),
      lane_(std::make_shared<StoreLane>()),
      answer_seconds_(answer_seconds) {}
ControlStore::ControlStore(const ControlStore&) = default;
ControlStore::~ControlStore() = default;

// The answer is kept by whoever is done last: this call, or the lane's thread after a time-out.
template <class Result>
Result ControlStore::ask(std::function<Result(c10d::Store&)> question) const {
  const auto answer = std::make_shared<Result>();
  try {
    lane_->run(
        [answer, store = store_, question = std::move(question)] { *answer = question(*store); },
        answer_seconds_);
  } catch (const std::exception& error) {
    throw LaunchError(cat("lost the job's store, which rank 0 or its launcher keeps: ",
                          first_line(error), ". Fix: look at what rank 0 said last"));
  }
  return std::move(*answer);
}

ControlStore ControlStore::clone() const {
  return ControlStore(
      ask<c10::intrusive_ptr<c10d::Store>>([](c10d::Store& store) { return store.clone(); }),
      answer_seconds_);
}

ControlStore ControlStore::with_limit(double answer_seconds) const {
  ControlStore other = *this;
  other.answer_seconds_ = answer_seconds;
  return other;
}

void ControlStore::give_up() { lane_->give_up(); }

void ControlStore::set(const std::string& key, const std::string& value) {
  ask<bool>([key, bytes = bytes_of(value)](c10d::Store& store) {
    store.set(key, bytes);
    return true;
  });
}

std::optional<std::string> ControlStore::find(const std::string& key) {
  return ask<std::optional<std::string>>([key](c10d::Store& store) -> std::optional<std::string> {
    if (!store.check({key})) return std::nullopt;
    const std::vector<uint8_t> value = store.get(key);
    return std::string(value.begin(), value.end());
  });
}

int64_t ControlStore::add(const std::string& key, int64_t amount) {
  return ask<int64_t>([key, amount](c10d::Store& store) { return store.add(key, amount); });
}

void ControlStore::append(const std::string& key, const std::string& text) {
  ask<bool>([key, bytes = bytes_of(text)](c10d::Store& store) {
    store.append(key, bytes);
    return true;
  });
}

void ControlStore::remove(const std::string& key) {
  ask<bool>([key](c10d::Store& store) { return store.deleteKey(key); });
}

std::optional<std::string> ControlStore::wait_for(const std::string& key, double timeout_seconds,
                                                  const std::function<bool()>& is_over) {
  const double deadline = monotonic_seconds() + timeout_seconds;
  auto pause = std::chrono::milliseconds(1);
  while (true) {
    if (auto value = find(key)) return value;
    if (is_over && is_over()) return std::nullopt;
    if (monotonic_seconds() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(20));
  }
}

bool ControlStore::set_first(const std::string& key, const std::string& value) {
  if (add(key + "/claims", 1) > 1) return false;
  set(key, value);
  return true;
}

}  // namespace assay::distributed
