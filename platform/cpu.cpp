#include "platform/cpu.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>

#include <sched.h>
#include <unistd.h>

#include "base/text.h"

namespace assay::platform {
namespace {

// What training speed and checksum speed depend on; the rest of the flags is noise.
constexpr std::array<std::string_view, 20> kFeaturesOfInterest = {
    "avx",         "avx2",     "fma",      "f16c",     "avx512f", "avx512_bf16", "avx512_fp16",
    "avx512_vnni", "avx_vnni", "amx_tile", "amx_bf16", "sha_ni",  "vaes",        "asimd",
    "asimdhp",     "sve",      "sve2",     "bf16",     "i8mm",    "sha2"};

struct CpuSetFree {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

// CPUs in the affinity mask of this process; 0 if the kernel does not say. The mask is grown,
// because machines with more than 1,024 CPUs do not fit the default set.
int64_t affinity_count() {
  for (size_t capacity = 1024; capacity <= size_t{1} << 20; capacity *= 2) {
    const std::unique_ptr<cpu_set_t, CpuSetFree> set(CPU_ALLOC(capacity));
    if (!set) return 0;
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    CPU_ZERO_S(bytes, set.get());
    if (sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
    if (errno != EINVAL) return 0;
  }
  return 0;
}

int64_t count_processors(std::string_view cpuinfo) {
  int64_t count = 0;
  for (const std::string& line : split(cpuinfo, '\n')) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && trimmed(line.substr(0, colon)) == "processor") ++count;
  }
  return count;
}

int64_t machine_cpus(const Roots& roots, std::string_view cpuinfo) {
  const int64_t online =
      count_kernel_list(read_text(roots, "/sys/devices/system/cpu/online").value_or(""));
  return std::max<int64_t>(1, online > 0 ? online : count_processors(cpuinfo));
}

std::string model_name(std::string_view cpuinfo) {
  for (const std::string_view key : {"model name", "Model", "cpu model", "uarch"}) {
    const std::optional<std::string> value = keyed_value(cpuinfo, key);
    if (value && !value->empty()) return *value;
  }
  const std::optional<std::string> implementer = keyed_value(cpuinfo, "CPU implementer");
  const std::optional<std::string> part = keyed_value(cpuinfo, "CPU part");
  if (implementer && part) return cat("implementer ", *implementer, ", part ", *part);
  return {};
}

std::vector<std::string> features_of(std::string_view cpuinfo) {
  const std::optional<std::string> flags = keyed_value(cpuinfo, "flags");
  const std::vector<std::string> present =
      words_of(flags ? *flags : keyed_value(cpuinfo, "Features").value_or(""));
  std::vector<std::string> features;
  for (const std::string_view feature : kFeaturesOfInterest) {
    if (std::find(present.begin(), present.end(), feature) != present.end()) {
      features.emplace_back(feature);
    }
  }
  return features;
}

}  // namespace

int64_t usable_cpus(const Roots& roots, const CgroupLimits& limits) {
  int64_t cpus = roots.affinity_cpus > 0 ? roots.affinity_cpus : affinity_count();
  if (cpus <= 0) cpus = machine_cpus(roots, read_text(roots, "/proc/cpuinfo").value_or(""));
  if (limits.cpuset_cpus > 0) cpus = std::min(cpus, limits.cpuset_cpus);
  if (limits.quota_cpus > 0 && limits.quota_cpus < static_cast<double>(cpus)) {
    cpus = static_cast<int64_t>(std::floor(limits.quota_cpus));
  }
  return std::max<int64_t>(1, cpus);
}

CpuFacts read_cpu(const Roots& roots, const CgroupLimits& limits) {
  const std::string cpuinfo = read_text(roots, "/proc/cpuinfo").value_or("");
  CpuFacts facts;
  facts.model = model_name(cpuinfo);
  facts.logical_cpus = machine_cpus(roots, cpuinfo);
  facts.available_cpus = usable_cpus(roots, limits);
  facts.cgroup_quota_cpus = limits.quota_cpus;
  facts.numa_nodes = std::max<int64_t>(
      1, count_kernel_list(read_text(roots, "/sys/devices/system/node/online").value_or("")));
  facts.features = features_of(cpuinfo);
  facts.governor =
      read_text(roots, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").value_or("");
  return facts;
}

}  // namespace assay::platform
