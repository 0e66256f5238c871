#include "data/file_facts.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace assay::data {
namespace {

constexpr std::string_view kFirstLine = "assay file facts 1";

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// One line a value, so that a path with odd characters cannot be taken for another value.
std::string stamp_text(const FileStamp& stamp, const std::string& kind) {
  return cat(kFirstLine, "\n", kind, "\n", quoted(stamp.path), "\n", stamp.bytes, " ", stamp.device,
             " ", stamp.inode, " ", stamp.modified_ns, " ", stamp.changed_ns, "\n");
}

std::string entry_path(const FileStamp& stamp, const std::string& kind) {
  const std::string folder = cache_folder();
  if (folder.empty()) return "";
  const std::string name = sha256_hex(cat(kind, "\n", stamp.path)).substr(0, 32);
  return join_path(join_path(folder, "file-facts"), name);
}

}  // namespace

FileStamp stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw DataError(cat("data file ", path, " cannot be examined: ", std::strerror(errno),
                        ". Fix: check --data_dir and the file"));
  }
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(path, error);
  return {.path = error ? path : whole.string(),
          .bytes = static_cast<uint64_t>(status.st_size),
          .device = status.st_dev,
          .inode = status.st_ino,
          .modified_ns = nanoseconds(status.st_mtim),
          .changed_ns = nanoseconds(status.st_ctim)};
}

std::string cache_folder() {
  const auto value_of = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string own = value_of("ASSAY_CACHE"); !own.empty()) return own;
  if (const std::string xdg = value_of("XDG_CACHE_HOME"); !xdg.empty()) {
    return join_path(xdg, "assay");
  }
  const std::string home = value_of("HOME");
  return home.empty() ? "" : join_path(home, ".cache/assay");
}

std::optional<NumberFacts> cached_facts(const FileStamp& stamp, const std::string& kind) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 20;
  const std::string path = entry_path(stamp, kind);
  if (path.empty() || !is_regular_file(path)) return std::nullopt;
  std::string content;
  try {
    content = read_file(path, kMostBytes);
  } catch (const FileError&) {  // an optimisation only: the caller reads the data file instead
    return std::nullopt;
  }
  const std::string expected = stamp_text(stamp, kind);
  constexpr size_t kDigestBytes = 33;  // 32 digits and a line end
  if (content.size() < kDigestBytes || !content.starts_with(expected)) return std::nullopt;
  const std::string body = content.substr(0, content.size() - kDigestBytes);
  if (xxh3_hex(body.data(), body.size()) + "\n" != content.substr(body.size())) return std::nullopt;
  const std::vector<std::string> lines = split(body.substr(expected.size()), '\n');
  NumberFacts facts{.text = lines[0], .numbers = {}};
  for (size_t i = 1; i + 1 < lines.size(); ++i) {  // behind the last line end there is nothing
    const std::optional<int64_t> number = parse_int64(lines[i]);
    if (!number) return std::nullopt;
    facts.numbers.push_back(*number);
  }
  return facts;
}

bool keep_facts(const FileStamp& stamp, const std::string& kind, const NumberFacts& facts,
                const KeepRules& rules) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  if (stamp.bytes < rules.smallest_bytes) return false;
  if (now.count() - std::max(stamp.changed_ns, stamp.modified_ns) < rules.smallest_age_ns) {
    return false;
  }
  const std::string path = entry_path(stamp, kind);
  if (path.empty()) return false;
  std::string body = cat(stamp_text(stamp, kind), facts.text, "\n");
  for (const int64_t number : facts.numbers) body += cat(number, "\n");
  try {
    if (stamp_of(stamp.path) != stamp) return false;  // changed while it was read
    create_directories(parent_path(path));
    write_file_durably(path, cat(body, xxh3_hex(body.data(), body.size()), "\n"), "facts");
  } catch (const FileError&) {  // a cache on a full or read-only disk: the next run reads again
    return false;
  }
  return true;
}

}  // namespace assay::data
