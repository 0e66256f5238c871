#include <array>
#include <cerrno>
#include <sys/file.h>

#include <fcntl.h>
#include <unistd.h>

#include "base/file_calls.h"
#include "base/files.h"
#include "base/text.h"

namespace assay {
namespace {

std::string host_name() {
  std::array<char, 256> buffer{};
  if (::gethostname(buffer.data(), buffer.size() - 1) != 0) return "unknown-host";
  return buffer.data();
}

// "pid host\n" as the owner wrote it; the owner may not have written it yet.
std::string holder_text(std::string_view content) {
  const std::vector<std::string> words = split(trimmed(content), ' ');
  if (words.size() != 2 || !parse_uint64(words[0])) return "another process";
  return cat("process ", words[0], " on host ", escaped(words[1]));
}

std::string read_holder(const Descriptor& file) {
  std::array<char, 512> buffer;
  const ssize_t count = ::pread(file.get(), buffer.data(), buffer.size(), 0);
  return holder_text(std::string_view(buffer.data(), count > 0 ? static_cast<size_t>(count) : 0));
}

}  // namespace

std::unique_ptr<FolderLock> FolderLock::try_lock(const std::string& path, std::string* holder) {
  Descriptor file = open_descriptor(path, O_RDWR | O_CREAT | O_NOFOLLOW, "open the lock");
  int result = -1;
  do {
    result = ::flock(file.get(), LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno == EWOULDBLOCK) {
    if (holder != nullptr) *holder = read_holder(file);
    return nullptr;
  }
  if (result != 0) throw FileError("lock", path, errno);
  if (::ftruncate(file.get(), 0) != 0) throw FileError("write", path, errno);
  write_all(file.get(), cat(static_cast<int64_t>(::getpid()), " ", host_name(), "\n"), path, "");
  return std::unique_ptr<FolderLock>(new FolderLock(file.release()));
}

bool FolderLock::is_held(const std::string& path, std::string* holder) {
  if (!path_exists(path)) return false;
  const Descriptor file = open_descriptor(path, O_RDONLY | O_NOFOLLOW, "open the lock");
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return false;
  if (holder != nullptr) *holder = read_holder(file);
  return true;
}

FolderLock::~FolderLock() { ::close(descriptor_); }

}  // namespace assay
