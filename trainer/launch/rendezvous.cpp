#include "trainer/launch/rendezvous.h"

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "trainer/launch/address.h"
#include "trainer/launch/endpoint.h"
#include "trainer/launch/rendezvous_client.h"
#include "trainer/launch/rendezvous_server.h"

namespace assay::launch {
namespace {

// For a launcher that has the port but does not listen yet, or that is about to end.
constexpr double kTakenSeconds = 2;
constexpr double kProbeSeconds = 1;
constexpr auto kRetry = std::chrono::milliseconds(50);

// A literal is what the user wants to listen on. A name may stand for loopback in this host's own
// tables (Debian's 127.0.1.1), where no other host could come, so it listens on every address.
std::string listening_address(const std::string& host) {
  return is_numeric_address(host) ? host : std::string();
}

std::unique_ptr<Rendezvous> serve(const RendezvousRequest& request, const std::string& address) {
  return std::make_unique<RendezvousServer>(request, listen_on(address, request.port));
}

}  // namespace

std::unique_ptr<Rendezvous> open_rendezvous(const RendezvousRequest& request) {
  const std::string address = listening_address(request.host);
  const bool is_here = is_own_host(request.host);
  if (request.node_rank == 0) {
    // Told to serve: behind a translated address the endpoint is not this host's own.
    return serve(request, is_here ? address : std::string());
  }
  if (request.node_rank || !is_here) return std::make_unique<RendezvousClient>(request);
  const double deadline = monotonic_seconds() + kTakenSeconds;
  while (true) {
    try {
      return serve(request, address);
    } catch (const LaunchError&) {
      // Whoever answers has the port: most likely another launcher of this host, which the client
      // finds out. If nobody does, the port cannot be had for another reason.
      if (connect_problem(request.host, request.port, kProbeSeconds).empty()) break;
      if (monotonic_seconds() > deadline) throw;
    }
    if (request.is_cancelled && request.is_cancelled()) {
      throw LaunchError("waiting for the other nodes was given up");
    }
    std::this_thread::sleep_for(kRetry);
  }
  return std::make_unique<RendezvousClient>(request);
}

}  // namespace assay::launch
