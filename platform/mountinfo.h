// The mount table of this process, as /proc/self/mountinfo has it (proc(5)).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "platform/roots.h"

namespace assay::platform {

struct MountEntry {
  std::string device_number;  // "254:0"
  std::string root;           // the part of the file system that is mounted
  std::string mount_point;
  std::string options;        // of this mount: "rw,relatime"
  std::string file_system;    // "ext4", "cgroup2", ...
  std::string source;         // "/dev/vda"
  std::string super_options;  // of the file system: "rw,cpu"
};

// In mount order; lines that are not mountinfo lines are left out.
std::vector<MountEntry> parse_mountinfo(std::string_view text);

std::vector<MountEntry> read_mountinfo(const Roots& roots);

// True if the comma-separated options have this one.
bool has_option(std::string_view options, std::string_view option);

}  // namespace assay::platform
