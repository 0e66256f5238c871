#include "platform/environment.h"

#include <optional>
#include <string_view>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/text.h"
#include "platform/cgroup.h"
#include "platform/cpu.h"
#include "platform/gpus.h"
#include "platform/memory.h"
#include "platform/mountinfo.h"
#include "platform/mounts.h"
#include "platform/record.h"
#include "platform/roots.h"

namespace assay::platform {
namespace {

// Value of PRETTY_NAME="..." in os-release(5).
std::string os_name(const Roots& roots) {
  constexpr std::string_view kKey = "PRETTY_NAME=";
  for (const std::string_view path : {"/etc/os-release", "/usr/lib/os-release"}) {
    for (const std::string& line : split(read_text(roots, path).value_or(""), '\n')) {
      if (line.rfind(kKey, 0) != 0) continue;
      std::string value = trimmed(std::string_view(line).substr(kKey.size()));
      const bool is_quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
                             value.back() == value.front();
      return is_quoted ? value.substr(1, value.size() - 2) : value;
    }
  }
  return {};
}

// Marks that Docker, Podman, systemd-nspawn, LXC and Kubernetes leave.
bool is_container(const Roots& roots, const std::vector<MountEntry>& mounts) {
  for (const std::string_view mark :
       {"/.dockerenv", "/run/.containerenv", "/run/systemd/container"}) {
    if (exists(roots, mark)) return true;
  }
  const std::string groups = read_text(roots, "/proc/self/cgroup").value_or("");
  for (const std::string_view word : {"docker", "kubepods", "containerd", "libpod", "lxc"}) {
    if (groups.find(word) != std::string::npos) return true;
  }
  for (const MountEntry& mount : mounts) {
    if (mount.mount_point == "/" && mount.file_system == "overlay") return true;
  }
  return false;
}

}  // namespace

Environment record_environment_of(const Roots& roots, const std::vector<std::string>& paths) {
  Environment environment;
  environment.recorded_utc = utc_timestamp();
  utsname names = {};
  if (uname(&names) == 0) {
    environment.host_name = names.nodename;
    environment.kernel = cat(names.sysname, " ", names.release, " ", names.machine);
  }
  environment.os = os_name(roots);
  const std::vector<MountEntry> mounts = read_mountinfo(roots);
  environment.is_container = is_container(roots, mounts);
  const CgroupLimits limits = read_cgroup_limits(roots);
  environment.cpu = read_cpu(roots, limits);
  environment.memory = read_memory(roots, limits);
  for (const std::string& path : paths) {
    environment.mounts.push_back(read_mount(roots, mounts, path));
  }
  read_gpus(roots, environment);
  return environment;
}

Environment record_environment(const std::vector<std::string>& paths) {
  return record_environment_of(Roots{}, paths);
}

int64_t available_cpus() {
  const Roots roots;
  return usable_cpus(roots, read_cgroup_limits(roots));
}

}  // namespace assay::platform
