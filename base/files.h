// Files: reading, the durable write, folders, locks. Every durable step passes a fault point, so
// that tests can fail it. Errors carry path, operation and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Failure of a file operation. `error_number` is errno; the message has operation, path and reason
// ("cannot write runs/a/latest: no space left on device").
class FileError : public std::exception {
 public:
  FileError(const std::string& operation, const std::string& path, int error_number);
  const char* what() const noexcept override { return message_.c_str(); }
  int error_number() const { return error_number_; }

 private:
  std::string message_;
  int error_number_;
};

std::string join_path(std::string_view folder, std::string_view name);
std::string parent_path(std::string_view path);
std::string file_name(std::string_view path);

bool path_exists(const std::string& path);  // follows links
bool is_directory(const std::string& path);
bool is_regular_file(const std::string& path);
uint64_t file_bytes(const std::string& path);  // throws FileError

// Whole file; throws FileError. `limit` guards against absurd sizes (EFBIG).
std::string read_file(const std::string& path, uint64_t limit = uint64_t{1} << 32);

// Names in a folder, sorted bytewise, without "." and ".."; throws FileError.
std::vector<std::string> list_directory(const std::string& path);

void create_directories(const std::string& path);  // throws FileError
void rename_path(const std::string& from, const std::string& to, std::string_view fault_site);
void sync_directory(const std::string& path, std::string_view fault_site);
void remove_file(const std::string& path);  // missing is fine
void remove_tree(const std::string& path);  // never follows links; missing is fine

struct DiskSpace {
  uint64_t free_bytes = 0;  // for an unprivileged user
  uint64_t total_bytes = 0;
  uint64_t free_inodes = 0;  // 0 and total 0: the file system does not count inodes
  uint64_t total_inodes = 0;
};
DiskSpace disk_space(const std::string& path);  // throws FileError

// One file being written from start to end: open (exclusive create), write (loops on short writes
// and EINTR), sync, close. Fault points "<site>.open|write|fsync|close". The destructor closes
// without syncing and leaves the file where it is. Not thread-safe.
class FileWriter {
 public:
  FileWriter(std::string path, std::string_view fault_site);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  void write(const void* bytes, size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Replaces the first bytes of what was written; later writes go on at the end.
  void overwrite_start(std::string_view text);
  void sync();
  void close();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string site_;
  int descriptor_ = -1;
};

// Replaces `path` by `text` so that after a crash the old or the new content is there, never a
// part: temporary file with a random suffix beside it, write, fsync, rename, fsync of the folder.
// Removes the temporary file on failure. Throws FileError.
void write_file_durably(const std::string& path, std::string_view text,
                        std::string_view fault_site);

// A line-oriented log that only grows. Each append is one write(2) (more only where the system
// takes less than asked); an append that fails is cut off again. sync() makes all durable. Fault
// points as FileWriter. The destructor closes without syncing. Not thread-safe.
class AppendFile {
 public:
  explicit AppendFile(std::string path, std::string_view fault_site);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  void append(std::string_view text);
  void sync();
  void close();

 private:
  std::string path_;
  std::string site_;
  int descriptor_ = -1;
};

// Read-only memory map of a whole file; an empty file maps to size 0.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);  // throws FileError
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  const unsigned char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const unsigned char* data_ = nullptr;
  size_t size_ = 0;
};

// Exclusive flock on a file; the kernel drops it when the process dies, so a stale lock cannot
// stay. The file holds the owner's pid and host for messages and is left in place.
class FolderLock {
 public:
  // Nothing if somebody else holds it; `holder` then says who. Throws FileError.
  static std::unique_ptr<FolderLock> try_lock(const std::string& path, std::string* holder);
  // Whether somebody holds it now; changes nothing. False if there is no such file.
  static bool is_held(const std::string& path, std::string* holder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// Opens /dev/null on each of the descriptors 0, 1 and 2 that is closed, so that no file of ours
// gets one of them and then what is printed. Call first in main.
void ensure_standard_streams();

// A folder under $TMPDIR (or /tmp) that is removed with everything in it on destruction.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string_view prefix = "assay");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace assay
