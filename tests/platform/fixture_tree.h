// A folder that looks like the kernel's /proc, /sys and /dev of another machine.
#pragma once

#include <string>
#include <string_view>

#include "base/files.h"
#include "platform/roots.h"

namespace assay::platform {

class FixtureTree {
 public:
  FixtureTree() : folder_("assay-fixture") {}

  // Writes a file, folders above it included; `path` is absolute, as on the machine.
  FixtureTree& add(std::string_view path, std::string_view text);
  FixtureTree& add_folder(std::string_view path);

  const std::string& path() const { return folder_.path(); }

  // Without a management library unless one is named.
  Roots roots(int64_t affinity_cpus = 64, const std::string& nvml_library = "libabsent-nvml.so.1");

 private:
  TemporaryFolder folder_;
};

// /proc/self/cgroup and mountinfo of a machine with the unified hierarchy at /sys/fs/cgroup, this
// process being in `group`.
void add_unified_cgroup(FixtureTree& tree, std::string_view group);

}  // namespace assay::platform
