// What a pass over a large file found, kept in the cache folder under the file's identity, so that
// the next run need not read it again. Small or just written files are never kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::data {

// Which file, in which state. Any write to it changes the stamp.
struct FileStamp {
  std::string path;  // absolute, without links
  uint64_t bytes = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};
FileStamp stamp_of(const std::string& path);  // throws DataError

struct NumberFacts {
  std::string text;  // e.g. a digest; printable
  std::vector<int64_t> numbers;
};

// $ASSAY_CACHE, $XDG_CACHE_HOME/assay or ~/.cache/assay; empty if none of them is set.
std::string cache_folder();

// Facts of that kind ("tokens-2") kept for exactly this stamp; nothing if there are none or the
// entry is damaged.
std::optional<NumberFacts> cached_facts(const FileStamp& stamp, const std::string& kind);

struct KeepRules {
  uint64_t smallest_bytes = uint64_t{16} << 20;  // below: reading again is as fast
  // A file changed just now may change again within one tick of its time stamp.
  int64_t smallest_age_ns = 2'000'000'000;
};
// Keeps them for later. A cache that cannot be written is no failure: the next run reads again.
// Returns whether they were kept.
bool keep_facts(const FileStamp& stamp, const std::string& kind, const NumberFacts& facts,
                const KeepRules& rules = {});

}  // namespace assay::data
