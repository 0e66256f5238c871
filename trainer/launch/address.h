// Addresses and sockets of this host, as far as finding the other ranks needs them. IPv4 and IPv6.
// No torch.
#pragma once

#include <cstdint>
#include <string>

namespace assay::launch {

// "[::1]" -> "::1"; everything else unchanged.
std::string without_brackets(const std::string& host);

// "10.0.0.1:29500", "[fd00::1]:29500": for messages.
std::string endpoint_text(const std::string& host, int64_t port);

bool is_loopback(const std::string& numeric_address);

// This host's own address from which the kernel would send to `host`; sends nothing. Throws
// LaunchError if the name does not resolve or no route leads there.
std::string local_address_towards(const std::string& host, int64_t port);

// The interface that has `numeric_address`, e.g. "eth0"; empty if none has.
std::string interface_of(const std::string& numeric_address);

// The first address of an interface, IPv4 before IPv6; empty if it has none or does not exist.
std::string address_of_interface(const std::string& name);
// "eth0, lo": for messages.
std::string interface_names();

// A listening socket. `port` 0: a free one. `host` empty: every address (IPv6 and IPv4 in one
// socket where IPv6 is there), otherwise that numeric address. Throws LaunchError naming address
// and port and, where the port is taken, the option to use.
int listen_on(const std::string& host, int64_t port);
int64_t port_of_socket(int fd);
// Where a process of this host reaches that listening socket: its own address, or loopback for a
// socket that listens on every address.
std::string address_of_socket(int fd);

// Tries to open a TCP connection; the reason if that fails ("connection refused"), else empty.
std::string connect_problem(const std::string& host, int64_t port, double timeout_seconds);

// Tells network namespaces of hosts apart: boot id and namespace.
std::string host_identity();
std::string host_name();

}  // namespace assay::launch
