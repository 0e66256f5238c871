// World::connect: which backend, over which addresses, and whether the hosts reach one another.
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "trainer/distributed/process_group.h"
#include "trainer/distributed/world_impl.h"
#include "trainer/launch/address.h"

namespace assay::distributed {
namespace {

using launch::address_of_interface;
using launch::connect_problem;
using launch::endpoint_text;
using launch::interface_names;
using launch::interface_of;
using launch::is_loopback;
using launch::listen_on;
using launch::local_address_towards;
using launch::port_of_socket;

// Two hosts that cannot reach one another are named within this time.
constexpr double kProbeSeconds = 5.0;

std::string environment_text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_one_host(const std::vector<RankRecord>& ranks) {
  for (const RankRecord& rank : ranks) {
    if (rank.host_identity != ranks.front().host_identity) return false;
  }
  return true;
}

std::string loopback() {
  // 127.0.0.1 is there unless a host was built without IPv4.
  try {
    close(listen_on("127.0.0.1", 0));
    return "127.0.0.1";
  } catch (const LaunchError&) {
    return "::1";
  }
}

// The interface that the operator names; comma lists and NCCL's prefixes are for the libraries.
std::string chosen_interface() {
  const std::string name = environment_text("GLOO_SOCKET_IFNAME");
  if (name.empty()) return "";
  if (address_of_interface(name).empty()) {
    throw LaunchError(cat("GLOO_SOCKET_IFNAME is ", quoted(name),
                          ", an interface without an address here (there are ", interface_names(),
                          "). Fix: name one of these, or unset it"));
  }
  return name;
}

std::string own_address(const RankRecord& own, const std::vector<RankRecord>& ranks,
                        const std::string& interface) {
  if (!interface.empty()) return address_of_interface(interface);
  if (is_one_host(ranks)) return loopback();
  const std::string address = reachable_address(own, ranks, [](const std::string& other) {
    return local_address_towards(other, 1);  // any port: nothing is sent
  });
  if (is_loopback(address)) {
    throw LaunchError(cat(rank_text(own), " has only the loopback address ", address,
                          " towards the others (MASTER_ADDR resolves to it). Fix: MASTER_ADDR with "
                          "an address of this host's network, or GLOO_SOCKET_IFNAME"));
  }
  return address;
}

// "from 10.0.0.2 on eth0", for a message.
std::string way_to(const std::string& host, int64_t port) {
  try {
    const std::string own = local_address_towards(host, port);
    return cat("from ", own, " on ", interface_of(own));
  } catch (const LaunchError&) {
    return "no route leads there";
  }
}

// Every rank knocks at the first rank of every other host, at the address that the backend will
// use.
void knock(const RankRecord& own, const std::vector<RankRecord>& ranks,
           const std::vector<std::string>& endpoints) {
  std::set<std::string> seen = {own.host_identity};
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!seen.insert(ranks[r].host_identity).second) continue;
    const size_t space = endpoints[r].find(' ');
    const std::string host = endpoints[r].substr(0, space);
    const int64_t port = parse_int64(endpoints[r].substr(space + 1)).value_or(0);
    const std::string problem = connect_problem(host, port, kProbeSeconds);
    if (problem.empty()) continue;
    throw LaunchError(cat(rank_text(own), " cannot reach ", rank_text(ranks[r]), " at ",
                          endpoint_text(host, port), " (", way_to(host, port), "): ", problem,
                          ". Fix: check routes and firewalls, or set GLOO_SOCKET_IFNAME and "
                          "NCCL_SOCKET_IFNAME to the interface that joins the hosts"));
  }
}

void set_default(const char* name, const std::string& value) {
  setenv(name, value.c_str(), /*overwrite=*/0);
}

// A watchdog that aborts the process would hide our exit code; the watch ends a hung rank instead.
void prepare_nccl(const std::string& interface) {
  setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", /*overwrite=*/1);
  set_default("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000");
  set_default("NCCL_SOCKET_IFNAME", interface);
}

}  // namespace

void World::connect(const std::string& backend, const c10::Device& device) {
  if (!is_distributed()) return;
  // One GPU for each rank is what NCCL needs; what the ranks see of a host's GPUs may differ.
  const std::string gpu =
      device.is_cuda() ? cat(environment_text("CUDA_VISIBLE_DEVICES"), "#", device.index()) : "";
  const std::vector<std::string> gpus = gather_texts("gpus", gpu);
  std::map<std::string, size_t> users;
  for (size_t r = 0; r < gpus.size(); ++r) {
    ++users[cat(impl_->ranks[r].host_identity, " ", gpus[r])];
  }
  bool has_own_gpus = device.is_cuda();
  for (const auto& [name, count] : users) has_own_gpus = has_own_gpus && count == 1;
  const bool wants_nccl = backend == "nccl" || (backend == "auto" && has_own_gpus && has_nccl());
  const RankRecord& own = impl_->ranks[static_cast<size_t>(rank())];
  std::string interface;
  std::string address;
  agree("addresses", Who::kEveryRank, [&] {
    if (wants_nccl && !has_own_gpus) {
      throw LaunchError(cat("--ddp_backend nccl needs a GPU of its own for each rank; ",
                            rank_text(own), " runs on ", device.str(),
                            ". Fix: fewer ranks, or --ddp_backend gloo"));
    }
    interface = chosen_interface();
    address = own_address(own, impl_->ranks, interface);
  });
  int listener = -1;
  std::string endpoint;
  agree("listeners", Who::kEveryRank, [&] {
    listener = listen_on(address, 0);
    endpoint = cat(address, " ", port_of_socket(listener));
  });
  const std::vector<std::string> endpoints = gather_texts("endpoints", endpoint);
  agree("routes", Who::kEveryRank, [&] { knock(own, impl_->ranks, endpoints); });
  close(listener);
  if (wants_nccl) prepare_nccl(interface.empty() ? interface_of(address) : interface);
  agree(
      "process group", Who::kEveryRank,
      [&] {
        const GroupRequest request{.store = impl_->store->raw(),
                                   .rank = static_cast<int>(rank()),
                                   .size = static_cast<int>(size()),
                                   .timeout_seconds = impl_->settings.collective_timeout_seconds,
                                   .address = address,
                                   .interface = interface,
                                   .device_index = device.is_cuda() ? device.index() : 0};
        impl_->group = wants_nccl ? make_nccl_group(request) : make_gloo_group(request);
        impl_->backend = wants_nccl ? "nccl" : "gloo";
        if (wants_nccl) impl_->carrier = device;
      },
      impl_->settings.collective_timeout_seconds);
}

}  // namespace assay::distributed
