#include "platform/cgroup.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "platform/mountinfo.h"

namespace assay::platform {
namespace {

// Names of one controller's files; they differ between the versions.
struct FileNames {
  std::string_view memory_limit;
  std::string_view memory_usage;
  std::string_view droppable_cache;  // key in memory.stat, hierarchical
  std::vector<std::string_view> cpusets;
};

const FileNames& names_of_version(int version) {
  static const FileNames kVersion1 = {"memory.limit_in_bytes",
                                      "memory.usage_in_bytes",
                                      "total_inactive_file",
                                      {"cpuset.effective_cpus", "cpuset.cpus"}};
  static const FileNames kVersion2 = {
      "memory.max", "memory.current", "inactive_file", {"cpuset.cpus.effective"}};
  return version == 1 ? kVersion1 : kVersion2;
}

// Path of this process in the hierarchy of `controller` (version 1), or in the unified hierarchy if
// `controller` is empty. Lines are "number:controllers:path"; the path may hold colons.
std::optional<std::string> group_path(std::string_view cgroup_text, std::string_view controller) {
  for (const std::string& line : split(cgroup_text, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_wanted = controller.empty()
                               ? line.compare(0, first, "0") == 0 && controllers.empty()
                               : has_option(controllers, controller);
    if (is_wanted) return line.substr(second + 1);
  }
  return std::nullopt;
}

// The group's path below the mount's root; nothing if the mount shows another subtree.
std::optional<std::string> path_below(const std::string& path, const std::string& root) {
  if (path.find("/..") != std::string::npos) return std::nullopt;  // outside of our namespace
  if (root == "/") return path == "/" ? std::string() : path;
  if (path == root) return std::string();
  if (path.rfind(root + "/", 0) == 0) return path.substr(root.size());
  return std::nullopt;
}

// Folders of the process's group and of all groups above it that can be seen, innermost first.
std::vector<std::string> group_folders(const std::vector<MountEntry>& mounts,
                                       std::string_view cgroup_text, std::string_view controller) {
  std::vector<std::string> folders;
  const std::optional<std::string> path = group_path(cgroup_text, controller);
  if (!path) return folders;
  std::optional<std::string> mount_point;
  std::string below;
  for (const MountEntry& mount : mounts) {
    const bool is_wanted = controller.empty() ? mount.file_system == "cgroup2"
                                              : mount.file_system == "cgroup" &&
                                                    has_option(mount.super_options, controller);
    if (!is_wanted) continue;
    const std::optional<std::string> candidate = path_below(*path, mount.root);
    if (candidate) {
      mount_point = mount.mount_point;
      below = *candidate;
    } else if (!mount_point) {
      mount_point = mount.mount_point;  // a container that sees only its own group, as the root
    }
  }
  if (!mount_point) return folders;
  while (!below.empty()) {
    folders.push_back(*mount_point + below);
    below.resize(below.rfind('/'));
  }
  folders.push_back(*mount_point);
  return folders;
}

template <class Number>
void keep_smaller(Number& kept, Number candidate) {
  if (candidate > 0 && (kept == 0 || candidate < kept)) kept = candidate;
}

double quota_of(const Roots& roots, const std::string& folder, int version) {
  std::optional<double> quota;
  std::optional<double> period;
  if (version == 2) {
    const std::vector<std::string> words =
        words_of(read_text(roots, folder + "/cpu.max").value_or(""));
    if (words.size() != 2) return 0;
    quota = parse_double(words[0]);  // "max" is no number: no quota
    period = parse_double(words[1]);
  } else {
    quota = parse_double(read_text(roots, folder + "/cpu.cfs_quota_us").value_or(""));
    period = parse_double(read_text(roots, folder + "/cpu.cfs_period_us").value_or(""));
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return 0;
  return *quota / *period;
}

int64_t cpuset_of(const Roots& roots, const std::string& folder, int version) {
  for (const std::string_view name : names_of_version(version).cpusets) {
    const std::optional<std::string> list = read_text(roots, cat(folder, "/", name));
    const int64_t count = list ? count_kernel_list(*list) : 0;
    if (count > 0) return count;
  }
  return 0;
}

uint64_t stat_value(std::string_view text, std::string_view key) {
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() == 2 && words[0] == key) return parse_uint64(words[1]).value_or(0);
  }
  return 0;
}

void add_memory(const Roots& roots, const std::string& folder, int version, CgroupLimits& limits) {
  // "max" (version 2) is no number; version 1 writes the largest page-aligned int64 for "no limit".
  constexpr uint64_t kNoLimit = uint64_t{1} << 60;
  const FileNames& names = names_of_version(version);
  const uint64_t limit =
      parse_uint64(read_text(roots, cat(folder, "/", names.memory_limit)).value_or("")).value_or(0);
  if (limit == 0 || limit >= kNoLimit) return;
  const uint64_t usage =
      parse_uint64(read_text(roots, cat(folder, "/", names.memory_usage)).value_or("")).value_or(0);
  const uint64_t cache =
      stat_value(read_text(roots, folder + "/memory.stat").value_or(""), names.droppable_cache);
  const uint64_t held = usage - std::min(usage, cache);
  const uint64_t room = limit - std::min(limit, held);
  const bool is_first = limits.memory_limit_bytes == 0;
  keep_smaller(limits.memory_limit_bytes, limit);
  limits.memory_room_bytes = is_first ? room : std::min(limits.memory_room_bytes, room);
}

}  // namespace

CgroupLimits read_cgroup_limits(const Roots& roots) {
  CgroupLimits limits;
  const std::vector<MountEntry> mounts = read_mountinfo(roots);
  const std::string cgroup_text = read_text(roots, "/proc/self/cgroup").value_or("");
  const std::vector<std::string> unified = group_folders(mounts, cgroup_text, "");
  for (const std::string& folder : unified) {
    keep_smaller(limits.quota_cpus, quota_of(roots, folder, 2));
    keep_smaller(limits.cpuset_cpus, cpuset_of(roots, folder, 2));
    add_memory(roots, folder, 2, limits);
  }
  for (const std::string& folder : group_folders(mounts, cgroup_text, "cpu")) {
    keep_smaller(limits.quota_cpus, quota_of(roots, folder, 1));
  }
  for (const std::string& folder : group_folders(mounts, cgroup_text, "cpuset")) {
    keep_smaller(limits.cpuset_cpus, cpuset_of(roots, folder, 1));
  }
  for (const std::string& folder : group_folders(mounts, cgroup_text, "memory")) {
    add_memory(roots, folder, 1, limits);
  }
  return limits;
}

}  // namespace assay::platform
