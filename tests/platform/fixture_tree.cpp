#include "tests/platform/fixture_tree.h"

#include <fstream>
#include <stdexcept>

#include "base/text.h"

namespace assay::platform {

FixtureTree& FixtureTree::add(std::string_view path, std::string_view text) {
  const std::string full = cat(folder_.path(), path);
  create_directories(parent_path(full));
  std::ofstream file(full, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(cat("cannot write ", full));
  return *this;
}

FixtureTree& FixtureTree::add_folder(std::string_view path) {
  create_directories(cat(folder_.path(), path));
  return *this;
}

Roots FixtureTree::roots(int64_t affinity_cpus, const std::string& nvml_library) {
  return {folder_.path(), affinity_cpus, nvml_library};
}

void add_unified_cgroup(FixtureTree& tree, std::string_view group) {
  tree.add("/proc/self/cgroup", cat("0::", group, "\n"));
  tree.add("/proc/self/mountinfo",
           "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
           "31 22 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
}

}  // namespace assay::platform
