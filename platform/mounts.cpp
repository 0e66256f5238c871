#include "platform/mounts.h"

#include <filesystem>
#include <sys/statvfs.h>
#include <system_error>

#include "base/text.h"

namespace assay::platform {
namespace {

// Absolute path without links, as this process sees it; what does not exist stays as written.
std::string resolved(const Roots& roots, const std::string& path) {
  std::error_code error;
  std::filesystem::path real = path.empty() ? "." : path;
  if (!roots.prefix.empty() && real.is_absolute()) {
    real = std::filesystem::path(roots.prefix) / real.relative_path();
  }
  const std::filesystem::path canonical =
      std::filesystem::weakly_canonical(std::filesystem::absolute(real, error), error);
  std::string text = error ? real.string() : canonical.string();
  const std::string root =
      roots.prefix.empty() ? "" : std::filesystem::weakly_canonical(roots.prefix, error).string();
  if (!root.empty() && text.rfind(root, 0) == 0) text.erase(0, root.size());
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text.empty() ? "/" : text;
}

std::string nearest_existing(const Roots& roots, std::string path) {
  while (path.size() > 1 && !exists(roots, path)) {
    const size_t slash = path.rfind('/');
    path.resize(slash == 0 || slash == std::string::npos ? 1 : slash);
  }
  return path;
}

bool is_below(const std::string& path, const std::string& mount_point) {
  if (mount_point == "/") return true;
  return path == mount_point || path.rfind(mount_point + "/", 0) == 0;
}

// The longest mount point above the path; of several on one point the last is on top.
const MountEntry* mount_of(const std::vector<MountEntry>& mounts, const std::string& path) {
  const MountEntry* best = nullptr;
  for (const MountEntry& mount : mounts) {
    if (!is_below(path, mount.mount_point)) continue;
    if (!best || mount.mount_point.size() >= best->mount_point.size()) best = &mount;
  }
  return best;
}

}  // namespace

MountFacts read_mount(const Roots& roots, const std::vector<MountEntry>& mounts,
                      const std::string& path) {
  MountFacts facts;
  facts.path = path;
  const std::string place = nearest_existing(roots, resolved(roots, path));
  const MountEntry* mount = mount_of(mounts, place);
  const MountEntry* root = mount_of(mounts, "/");
  if (mount) {
    facts.mount_point = mount->mount_point;
    facts.device = mount->source;
    facts.file_system = mount->file_system;
    facts.is_root_disk = root && root->device_number == mount->device_number;
    facts.is_read_only = has_option(mount->options, "ro") || has_option(mount->super_options, "ro");
  }
  struct statvfs status = {};
  if (statvfs(cat(roots.prefix, place).c_str(), &status) == 0) {
    facts.free_bytes = uint64_t{status.f_bavail} * uint64_t{status.f_frsize};
    facts.total_bytes = uint64_t{status.f_blocks} * uint64_t{status.f_frsize};
    facts.free_inodes = uint64_t{status.f_favail};
    facts.total_inodes = uint64_t{status.f_files};
    if ((status.f_flag & ST_RDONLY) != 0) facts.is_read_only = true;
  }
  return facts;
}

}  // namespace assay::platform
