#include "tests/support/processes.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>

#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

namespace assay::support {
namespace {

// Empty if the process is gone by now; a zombie has an empty command line.
std::string command_line(int64_t pid) {
  std::ifstream file(cat("/proc/", pid, "/cmdline"), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<int64_t> running_with(const std::string& word) {
  std::vector<int64_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto pid = parse_int64(entry.path().filename().string());
    if (!pid || *pid == getpid()) continue;
    if (command_line(*pid).find(word) != std::string::npos) found.push_back(*pid);
  }
  return found;
}

// Inodes of the sockets that a process has open.
std::set<std::string> socket_inodes(int64_t pid) {
  std::set<std::string> inodes;
  std::error_code ignored;  // the process may be gone by now
  for (const auto& entry :
       std::filesystem::directory_iterator(cat("/proc/", pid, "/fd"), ignored)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
    const size_t prefix = std::string("socket:[").size();
    if (target.starts_with("socket:[")) {
      inodes.insert(target.substr(prefix, target.size() - prefix - 1));
    }
  }
  return inodes;
}

}  // namespace

std::vector<std::string> listening_addresses(const std::string& word) {
  std::set<std::string> inodes;
  for (const int64_t pid : running_with(word)) inodes.merge(socket_inodes(pid));
  std::set<std::string> addresses;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // the heading
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
          timeout >> inode;
      constexpr const char* kListening = "0A";
      if (state == kListening && inodes.contains(inode)) addresses.insert(local);
    }
  }
  return {addresses.begin(), addresses.end()};
}

std::vector<int64_t> processes_with(const std::string& word, double limit_seconds) {
  const double deadline = monotonic_seconds() + limit_seconds;
  while (true) {
    std::vector<int64_t> running = running_with(word);
    if (running.empty() || monotonic_seconds() > deadline) return running;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace assay::support
