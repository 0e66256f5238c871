// Which processes of a job still run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::support {

// Ids of running processes (no zombies) with `word` in their command line. Waits for them to be
// gone for up to `limit_seconds`; empty at once when there are none.
std::vector<int64_t> processes_with(const std::string& word, double limit_seconds);

// Addresses on which processes with `word` in their command line listen, of TCP over IPv4 and IPv6,
// as /proc/net writes them ("0100007F:A3B1"); sorted.
std::vector<std::string> listening_addresses(const std::string& word);

}  // namespace assay::support
