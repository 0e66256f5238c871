// A rendezvous endpoint: is it this host, and how to get there. IPv4 and IPv6.
#pragma once

#include <cstdint>
#include <string>

namespace assay::launch {

bool is_numeric_address(const std::string& host);

// True if the name or address stands for this host: loopback, or an address of an interface. False
// for a name that does not resolve (yet).
bool is_own_host(const std::string& host);

// An open TCP connection. `from`: this host's address to come from, empty for the system's choice.
// Throws LaunchError naming endpoint and reason.
int connect_to(const std::string& host, int64_t port, double timeout_seconds,
               const std::string& from);

}  // namespace assay::launch
