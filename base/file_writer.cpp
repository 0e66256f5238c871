// The three ways to write: FileWriter, AppendFile, write_file_durably; and the temporary folder.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sys/random.h>
#include <sys/stat.h>
#include <utility>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_calls.h"
#include "base/files.h"
#include "base/text.h"

namespace assay {
namespace {

std::string random_suffix() {
  std::array<unsigned char, 4> bytes;
  ssize_t count = -1;
  do {
    count = ::getrandom(bytes.data(), bytes.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count != static_cast<ssize_t>(bytes.size())) {
    throw InternalError(cat("getrandom gave ", static_cast<int64_t>(count), " of 4 bytes"));
  }
  return hex_encode(bytes);
}

void require_open(int descriptor, const std::string& path, std::string_view operation) {
  if (descriptor < 0) throw InternalError(cat(operation, " after close of ", quoted(path)));
}

// Removes a temporary file unless it was renamed to its place.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  ~TemporaryFile() {
    if (!is_kept_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  void keep() { is_kept_ = true; }

 private:
  std::string path_;
  bool is_kept_ = false;
};

// ".<name>.tmp-<8 hex>" beside `path`; a long name is cut, so that the limit of 255 bytes is kept.
std::string temporary_path(const std::string& path) {
  constexpr size_t kMaxNameBytes = 255 - std::string_view("..tmp-12345678").size();
  const std::string name = file_name(path).substr(0, kMaxNameBytes);
  return join_path(parent_path(path), cat(".", name, ".tmp-", random_suffix()));
}

}  // namespace

FileWriter::FileWriter(std::string path, std::string_view fault_site)
    : path_(std::move(path)),
      site_(fault_site),
      descriptor_(open_for_writing(path_, O_WRONLY | O_EXCL, site_).release()) {}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(const void* bytes, size_t count) {
  require_open(descriptor_, path_, "write");
  write_all(descriptor_, std::string_view(static_cast<const char*>(bytes), count), path_, site_);
}

void FileWriter::overwrite_start(std::string_view text) {
  require_open(descriptor_, path_, "overwrite");
  const off_t end = ::lseek(descriptor_, 0, SEEK_CUR);
  if (end < static_cast<off_t>(text.size())) {
    throw InternalError(cat(text.size(), " bytes overwritten of ", quoted(path_), ", which has ",
                            static_cast<int64_t>(end)));
  }
  if (::lseek(descriptor_, 0, SEEK_SET) != 0) throw FileError("seek in", path_, errno);
  write_all(descriptor_, text, path_, site_);
  if (::lseek(descriptor_, end, SEEK_SET) != end) throw FileError("seek in", path_, errno);
}

void FileWriter::sync() {
  require_open(descriptor_, path_, "sync");
  sync_descriptor(descriptor_, path_, site_);
}

void FileWriter::close() {
  require_open(descriptor_, path_, "close");
  close_descriptor(std::exchange(descriptor_, -1), path_, site_);
}

void write_file_durably(const std::string& path, std::string_view text,
                        std::string_view fault_site) {
  const std::string temporary = temporary_path(path);
  FileWriter writer(temporary, fault_site);
  TemporaryFile guard(temporary);
  writer.write(text);
  writer.sync();
  writer.close();
  rename_path(temporary, path, cat(fault_site, ".rename"));
  guard.keep();
  sync_directory(parent_path(path), cat(fault_site, ".sync_parent"));
}

AppendFile::AppendFile(std::string path, std::string_view fault_site)
    : path_(std::move(path)),
      site_(fault_site),
      descriptor_(open_for_writing(path_, O_WRONLY | O_APPEND, site_).release()) {}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AppendFile::append(std::string_view text) {
  require_open(descriptor_, path_, "append");
  size_t num_written = 0;
  try {
    write_all(descriptor_, text, path_, site_, &num_written);
  } catch (...) {
    // A torn line would swallow the next one.
    struct stat status {};
    if (num_written > 0 && ::fstat(descriptor_, &status) == 0) {
      const off_t before = status.st_size - static_cast<off_t>(num_written);
      if (before >= 0 && ::ftruncate(descriptor_, before) != 0) {
        std::throw_with_nested(FileError("cut off a torn line of", path_, errno));
      }
    }
    throw;
  }
}

void AppendFile::sync() {
  require_open(descriptor_, path_, "sync");
  sync_descriptor(descriptor_, path_, site_);
}

void AppendFile::close() {
  require_open(descriptor_, path_, "close");
  close_descriptor(std::exchange(descriptor_, -1), path_, site_);
}

TemporaryFolder::TemporaryFolder(std::string_view prefix) {
  const char* root = std::getenv("TMPDIR");
  const bool has_root = root != nullptr && *root != '\0';
  std::string path = join_path(has_root ? root : "/tmp", cat(prefix, "-XXXXXX"));
  if (::mkdtemp(path.data()) == nullptr) throw FileError("create folder", path, errno);
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  try {
    remove_tree(path_);
  } catch (const FileError& error) {
    // A destructor must not throw; litter that stays is at least named.
    std::fprintf(stderr, "%s\n", error.what());
  }
}

void ensure_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free descriptor is this one, since the lower ones are open by now.
    if (::open("/dev/null", O_RDWR) < 0) return;  // nothing to print to and nothing to say it on
  }
}

}  // namespace assay
