#include "platform/memory.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <sys/statvfs.h>
#include <vector>

#include "base/text.h"

namespace assay::platform {
namespace {

// /proc/meminfo counts in units of 1,024 bytes and calls them kB.
uint64_t meminfo_bytes(std::string_view meminfo, std::string_view key) {
  const std::vector<std::string> words = words_of(keyed_value(meminfo, key).value_or(""));
  return words.empty() ? 0 : parse_uint64(words[0]).value_or(0) * 1024;
}

uint64_t shm_size(const Roots& roots) {
  struct statvfs status = {};
  if (statvfs(cat(roots.prefix, "/dev/shm").c_str(), &status) != 0) return 0;
  return uint64_t{status.f_blocks} * uint64_t{status.f_frsize};
}

// "Max locked memory  8388608  8388608  bytes": the soft limit is the first number.
uint64_t memlock_limit(const Roots& roots) {
  constexpr std::string_view kLabel = "Max locked memory";
  for (const std::string& line : split(read_text(roots, "/proc/self/limits").value_or(""), '\n')) {
    if (line.rfind(kLabel, 0) != 0) continue;
    const std::vector<std::string> words = words_of(std::string_view(line).substr(kLabel.size()));
    if (words.empty()) return 0;
    if (words[0] == "unlimited") return std::numeric_limits<uint64_t>::max();
    return parse_uint64(words[0]).value_or(0);
  }
  return 0;
}

}  // namespace

MemoryFacts read_memory(const Roots& roots, const CgroupLimits& limits) {
  const std::string meminfo = read_text(roots, "/proc/meminfo").value_or("");
  MemoryFacts facts;
  facts.total_bytes = meminfo_bytes(meminfo, "MemTotal");
  facts.available_bytes = meminfo_bytes(meminfo, "MemAvailable");
  facts.swap_bytes = meminfo_bytes(meminfo, "SwapTotal");
  facts.swap_used_bytes =
      facts.swap_bytes - std::min(facts.swap_bytes, meminfo_bytes(meminfo, "SwapFree"));
  // A limit above the machine's memory limits nothing.
  if (limits.memory_limit_bytes > 0 &&
      (facts.total_bytes == 0 || limits.memory_limit_bytes < facts.total_bytes)) {
    facts.cgroup_limit_bytes = limits.memory_limit_bytes;
    facts.available_bytes = std::min(facts.available_bytes, limits.memory_room_bytes);
  }
  facts.shm_bytes = shm_size(roots);
  facts.memlock_limit_bytes = memlock_limit(roots);
  return facts;
}

}  // namespace assay::platform
