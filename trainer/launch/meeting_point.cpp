#include "trainer/launch/meeting_point.h"

#include "base/error.h"
#include "base/text.h"

namespace assay::launch {
namespace {

constexpr int64_t kDefaultPort = 29500;  // torchrun's

[[noreturn]] void refuse_list(const std::string& what, const std::string& text) {
  throw LaunchError(cat(what, " ", quoted(text),
                        " cannot be read. Fix: set MASTER_ADDR and "
                        "MASTER_PORT yourself"));
}

std::string value_of(const Lookup& lookup, const char* name) {
  const char* value = lookup(name);
  return value == nullptr ? "" : value;
}

// Commas inside brackets belong to their group.
std::vector<std::string> split_groups(const std::string& text) {
  std::vector<std::string> groups(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      groups.emplace_back();
    } else {
      groups.back() += c;
    }
  }
  return groups;
}

void add_range(const std::string& prefix, const std::string& range, const std::string& suffix,
               size_t limit, std::vector<std::string>& hosts) {
  const size_t dash = range.find('-');
  const std::string first = range.substr(0, dash);
  const std::string last = dash == std::string::npos ? first : range.substr(dash + 1);
  const auto from = parse_int64(first);
  const auto to = parse_int64(last);
  if (!from || !to || *from < 0 || *to < *from) refuse_list("the host range", range);
  for (int64_t number = *from; number <= *to && hosts.size() < limit; ++number) {
    std::string digits = cat(number);
    if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
    hosts.push_back(cat(prefix, digits, suffix));
  }
}

std::string slurm_variable(const Lookup& lookup, const char* of_step, const char* of_job) {
  const std::string value = value_of(lookup, of_step);
  return value.empty() ? value_of(lookup, of_job) : value;
}

void fill_from_slurm(RankEnv& env, const Lookup& lookup) {
  const std::string nodes = slurm_variable(lookup, "SLURM_STEP_NODELIST", "SLURM_NODELIST");
  if (env.master_port == 0) {
    const int64_t job = parse_int64(value_of(lookup, "SLURM_JOB_ID")).value_or(0);
    const int64_t step = parse_int64(value_of(lookup, "SLURM_STEP_ID")).value_or(0);
    constexpr int64_t kFirst = 15000;
    constexpr int64_t kCount = 10000;
    env.master_port = kFirst + (job % kCount + step % kCount) % kCount;
  }
  if (lookup("MASTER_ADDR") == nullptr && !nodes.empty()) {
    env.master_addr = expand_host_list(nodes, 1).front();
  }
  const std::string counts =
      slurm_variable(lookup, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
  const auto node = parse_int64(value_of(lookup, "SLURM_NODEID"));
  if (counts.empty() || !node) return;
  const std::vector<int64_t> by_node = expand_task_counts(counts);
  if (*node >= 0 && *node < static_cast<int64_t>(by_node.size())) {
    env.local_world_size = by_node[static_cast<size_t>(*node)];
  }
}

void fill_from_mpi(RankEnv& env, const Lookup& lookup) {
  const bool is_one_host = env.local_world_size == env.world_size;
  if (lookup("MASTER_ADDR") == nullptr && !is_one_host) {
    throw LaunchError(cat(env.source, " started ", env.world_size, " ranks, ", env.local_world_size,
                          " of them on this host, and does not say where rank 0 is. Fix: pass "
                          "MASTER_ADDR (rank 0's host) to all ranks, e.g. mpirun -x "
                          "MASTER_ADDR=HOST"));
  }
  if (env.master_port != 0) return;
  // Open MPI numbers its jobs, so that two on one host do not meet.
  const auto job = parse_uint64(value_of(lookup, "OMPI_MCA_ess_base_jobid"));
  constexpr uint64_t kFirst = 20000;
  constexpr uint64_t kCount = 9000;
  env.master_port = job ? static_cast<int64_t>(kFirst + (*job >> 16) % kCount) : kDefaultPort;
}

}  // namespace

std::vector<std::string> expand_host_list(const std::string& text, size_t limit) {
  std::vector<std::string> hosts;
  for (const std::string& group : split_groups(text)) {
    if (hosts.size() >= limit) break;
    const size_t open = group.find('[');
    if (open == std::string::npos) {
      if (group.empty()) refuse_list("the host list", text);
      hosts.push_back(group);
      continue;
    }
    const size_t close = group.find(']', open);
    if (close == std::string::npos) refuse_list("the host list", text);
    const std::string suffix = group.substr(close + 1);
    if (suffix.find('[') != std::string::npos) refuse_list("the host list", text);
    for (const std::string& range : split(group.substr(open + 1, close - open - 1), ',')) {
      add_range(group.substr(0, open), range, suffix, limit, hosts);
    }
  }
  return hosts;
}

std::vector<int64_t> expand_task_counts(const std::string& text) {
  std::vector<int64_t> counts;
  for (const std::string& part : split(text, ',')) {
    const size_t open = part.find("(x");
    const auto count = parse_int64(part.substr(0, open));
    int64_t times = 1;
    if (open != std::string::npos) {
      const size_t close = part.find(')', open);
      if (close == std::string::npos) refuse_list("the task list", text);
      times = parse_int64(part.substr(open + 2, close - open - 2)).value_or(0);
    }
    if (!count || *count < 1 || times < 1 || times > (1 << 16)) refuse_list("the task list", text);
    counts.insert(counts.end(), static_cast<size_t>(times), *count);
  }
  return counts;
}

void fill_meeting_point(RankEnv& env, const Lookup& lookup) {
  if (env.world_size == 1) return;
  if (env.source == "Slurm") fill_from_slurm(env, lookup);
  if (env.source == "Open MPI" || env.source == "MPICH") fill_from_mpi(env, lookup);
}

}  // namespace assay::launch
