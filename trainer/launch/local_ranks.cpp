#include "trainer/launch/local_ranks.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include <sched.h>

#include "base/error.h"
#include "base/text.h"

namespace assay::launch {
namespace {

constexpr int64_t kMostCpus = int64_t{1} << 20;

const platform::GpuFacts* gpu_named(const std::vector<platform::GpuFacts>& gpus,
                                    const std::string& name) {
  const auto index = parse_int64(name);
  for (const platform::GpuFacts& gpu : gpus) {
    const bool is_it = index ? gpu.index == *index : !name.empty() && gpu.uuid.starts_with(name);
    if (is_it) return &gpu;
  }
  return nullptr;
}

}  // namespace

std::vector<platform::GpuFacts> visible_gpus(const std::vector<platform::GpuFacts>& gpus,
                                             const std::optional<std::string>& visible) {
  if (!visible) return gpus;
  std::vector<platform::GpuFacts> found;
  for (const std::string& entry : split(*visible, ',')) {
    const platform::GpuFacts* gpu = gpu_named(gpus, trimmed(entry));
    if (gpu == nullptr) break;
    found.push_back(*gpu);
  }
  return found;
}

int64_t count_local_ranks(const std::string& text, int64_t num_gpus, int64_t num_cpus) {
  if (const auto number = parse_int64(text)) return *number;
  if (text == "gpu" && num_gpus == 0) {
    throw ConfigError(
        "--nproc-per-node is gpu, but no GPU is visible here (driver and CUDA_VISIBLE_DEVICES "
        "taken into account). Fix: see assay doctor, or give a number, cpu or auto");
  }
  if (text == "cpu" || num_gpus == 0) return std::max<int64_t>(1, num_cpus);
  return num_gpus;
}

std::vector<int64_t> cpus_of_list(const std::string& list) {
  std::vector<int64_t> cpus;
  for (const std::string& part : split(trimmed(list), ',')) {
    const size_t dash = part.find('-');
    const auto first = parse_int64(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_int64(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCpus) return {};
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<NumaNode> read_numa_nodes(const platform::Roots& roots) {
  const std::string folder = "/sys/devices/system/node";
  std::vector<NumaNode> nodes;
  const auto online = platform::read_text(roots, cat(folder, "/online"));
  for (const int64_t number : cpus_of_list(online.value_or(""))) {
    const auto list = platform::read_text(roots, cat(folder, "/node", number, "/cpulist"));
    NumaNode node{number, cpus_of_list(list.value_or(""))};
    if (!node.cpus.empty()) nodes.push_back(std::move(node));  // memory without CPUs
  }
  return nodes;
}

std::vector<int64_t> allowed_cpus() {
  for (size_t capacity = 1024; capacity <= static_cast<size_t>(kMostCpus); capacity *= 2) {
    cpu_set_t* set = CPU_ALLOC(capacity);
    if (set == nullptr) return {};
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    CPU_ZERO_S(bytes, set);
    const bool is_read = sched_getaffinity(0, bytes, set) == 0;
    const bool is_small = !is_read && errno == EINVAL;
    std::vector<int64_t> cpus;
    for (size_t cpu = 0; is_read && cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(static_cast<int64_t>(cpu));
    }
    CPU_FREE(set);
    if (!is_small) return cpus;
  }
  return {};
}

std::vector<std::vector<int64_t>> plan_cpus(const std::vector<NumaNode>& nodes,
                                            const NumaRequest& request) {
  const auto num_ranks = static_cast<size_t>(request.num_local_ranks);
  std::vector<std::vector<int64_t>> plan(num_ranks);
  if (nodes.empty()) return plan;
  const bool are_gpus_known = request.node_of_gpu.size() >= num_ranks &&
                              std::all_of(request.node_of_gpu.begin(), request.node_of_gpu.end(),
                                          [](int64_t node) { return node >= 0; });
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    const NumaNode* node = &nodes[rank * nodes.size() / num_ranks];
    for (const NumaNode& other : nodes) {
      if (are_gpus_known && other.number == request.node_of_gpu[rank]) node = &other;
    }
    for (const int64_t cpu : node->cpus) {
      const auto& allowed = request.allowed;
      if (std::find(allowed.begin(), allowed.end(), cpu) != allowed.end()) {
        plan[rank].push_back(cpu);
      }
    }
  }
  return plan;
}

}  // namespace assay::launch
