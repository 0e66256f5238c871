#include "base/files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_calls.h"
#include "base/text.h"

namespace assay {
namespace {

// The system's reason, never translated by the locale.
std::string reason_text(int error_number) {
  const char* description = strerrordesc_np(error_number);
  if (description == nullptr) return cat("error ", error_number);
  std::string reason = description;
  const bool is_word = reason.size() > 1 && reason[1] >= 'a' && reason[1] <= 'z';
  if (is_word && reason[0] >= 'A' && reason[0] <= 'Z')
    reason[0] = static_cast<char>(reason[0] + 32);
  return reason;
}

struct stat status_of(const std::string& path, const std::string& operation) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw FileError(operation, path, errno);
  return status;
}

struct DirectoryCloser {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using DirectoryStream = std::unique_ptr<DIR, DirectoryCloser>;

std::vector<std::string> names_in(DIR* directory, const std::string& path) {
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(directory);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) throw FileError("list", path, errno);
  std::sort(names.begin(), names.end());
  return names;
}

// Opens a folder itself, never what a link points to. Nothing if it is no folder or is gone.
DirectoryStream open_folder_at(int parent, const char* name, const std::string& shown_path) {
  const int descriptor = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOTDIR || errno == ELOOP || errno == ENOENT) return nullptr;
    throw FileError("remove", shown_path, errno);
  }
  Descriptor owner(descriptor);
  DirectoryStream stream(::fdopendir(owner.get()));
  if (stream == nullptr) throw FileError("remove", shown_path, errno);
  owner.release();
  return stream;
}

void unlink_at(int parent, const char* name, int flags, const std::string& shown_path) {
  if (::unlinkat(parent, name, flags) != 0 && errno != ENOENT) {
    throw FileError("remove", shown_path, errno);
  }
}

// Each level holds one descriptor; a tree deeper than the limit of open files ends in EMFILE.
void remove_entry(int parent, const std::string& name, const std::string& shown_path) {
  const DirectoryStream folder = open_folder_at(parent, name.c_str(), shown_path);
  if (folder == nullptr) {
    unlink_at(parent, name.c_str(), 0, shown_path);
    return;
  }
  for (const std::string& child : names_in(folder.get(), shown_path)) {
    remove_entry(::dirfd(folder.get()), child, join_path(shown_path, child));
  }
  unlink_at(parent, name.c_str(), AT_REMOVEDIR, shown_path);
}

std::string without_trailing_slashes(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path);
}

}  // namespace

FileError::FileError(const std::string& operation, const std::string& path, int error_number)
    : message_(cat("cannot ", operation, " ", escaped(path), ": ", reason_text(error_number))),
      error_number_(error_number) {}

std::string join_path(std::string_view folder, std::string_view name) {
  if (folder.empty() || name.starts_with('/')) return std::string(name);
  return cat(folder, folder.ends_with('/') ? "" : "/", name);
}

std::string parent_path(std::string_view path) {
  const std::string bare = without_trailing_slashes(path);
  const size_t slash = bare.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : without_trailing_slashes(std::string_view(bare).substr(0, slash));
}

std::string file_name(std::string_view path) {
  const std::string bare = without_trailing_slashes(path);
  return bare.substr(bare.rfind('/') + 1);  // npos + 1 is 0
}

bool path_exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_regular_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

uint64_t file_bytes(const std::string& path) {
  return static_cast<uint64_t>(status_of(path, "read the size of").st_size);
}

std::string read_file(const std::string& path, uint64_t limit) {
  const Descriptor file = open_descriptor(path, O_RDONLY, "open");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw FileError("read", path, errno);
  const auto expected = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
  if (S_ISREG(status.st_mode) && expected > limit) throw FileError("read", path, EFBIG);
  std::string content;
  // The size is only a hint: files in /proc say 0, and a file may grow while it is read. One byte
  // more than expected lets the end show itself without another enlargement.
  content.resize(std::max<uint64_t>(S_ISREG(status.st_mode) ? expected + 1 : 0, 4096));
  uint64_t done = 0;
  while (const size_t count = read_some(file, content.data() + done, content.size() - done, path)) {
    done += count;
    if (done > limit) throw FileError("read", path, EFBIG);
    if (done == content.size()) content.resize(2 * content.size());
  }
  content.resize(done);
  return content;
}

std::vector<std::string> list_directory(const std::string& path) {
  const DirectoryStream directory(::opendir(path.c_str()));
  if (directory == nullptr) throw FileError("list", path, errno);
  return names_in(directory.get(), path);
}

void create_directories(const std::string& path) {
  if (is_directory(path)) return;
  const std::string parent = parent_path(path);
  // Only what is missing is made: a parent that cannot be written to does not matter.
  if (parent != path && !is_directory(parent)) create_directories(parent);
  if (::mkdir(path.c_str(), 0777) == 0) return;
  const int error_number = errno;
  // Somebody else may have made it in between.
  if (error_number == EEXIST && is_directory(path)) return;
  throw FileError("create folder", path, error_number == EEXIST ? ENOTDIR : error_number);
}

void rename_path(const std::string& from, const std::string& to, std::string_view fault_site) {
  const FaultOutcome fault = fault_step(fault_site, "");
  int error_number = fault.error_number;
  if (error_number == 0 && ::rename(from.c_str(), to.c_str()) != 0) error_number = errno;
  if (error_number != 0) throw FileError("rename", cat(from, " to ", to), error_number);
}

void sync_directory(const std::string& path, std::string_view fault_site) {
  const FaultOutcome fault = fault_step(fault_site, "");
  if (fault.error_number != 0) throw FileError("sync folder", path, fault.error_number);
  const Descriptor folder = open_descriptor(path, O_RDONLY | O_DIRECTORY, "sync folder");
  // EINVAL: this file system has no sync of folders (fsync(2)); there is nothing more to be done.
  if (::fsync(folder.get()) != 0 && errno != EINVAL) throw FileError("sync folder", path, errno);
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw FileError("remove", path, errno);
}

void remove_tree(const std::string& path) {
  // With a slash at its end the system would follow a link.
  const std::string bare = without_trailing_slashes(path);
  if (bare == "/") throw InternalError("remove_tree was asked to remove the root folder");
  remove_entry(AT_FDCWD, bare, bare);
}

DiskSpace disk_space(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) throw FileError("measure free space of", path, errno);
  const uint64_t fragment_bytes = status.f_frsize != 0 ? status.f_frsize : status.f_bsize;
  DiskSpace space;
  space.free_bytes = status.f_bavail * fragment_bytes;
  space.total_bytes = status.f_blocks * fragment_bytes;
  space.free_inodes = status.f_favail;
  space.total_inodes = status.f_files;
  return space;
}

MappedFile::MappedFile(const std::string& path) {
  const Descriptor file = open_descriptor(path, O_RDONLY, "open");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw FileError("map", path, errno);
  if (!S_ISREG(status.st_mode))
    throw FileError("map", path, S_ISDIR(status.st_mode) ? EISDIR : ENODEV);
  const auto bytes = static_cast<uint64_t>(status.st_size);
  if (bytes == 0) return;
  if (bytes > std::numeric_limits<size_t>::max()) throw FileError("map", path, EFBIG);
  void* address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) throw FileError("map", path, errno);
  data_ = static_cast<const unsigned char*>(address);
  size_ = bytes;
}

MappedFile::~MappedFile() {
  // munmap takes a pointer to non-const but changes nothing behind it.
  if (data_ != nullptr) ::munmap(const_cast<unsigned char*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

}  // namespace assay
