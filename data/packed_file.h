// One packed shard: its header, its index, and checked access to its samples straight from the map.
// The bytes are described in data/FORMAT.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/dataset.h"

namespace assay::data {

// Part of the format.
constexpr std::string_view kPackedStart = "ASSAYPAK";
constexpr std::string_view kPackedEnd = "ASSAYEND";
constexpr uint32_t kPackedVersion = 1;
constexpr uint64_t kPackedPrefixBytes = 24;  // magic, version, length and checksum of the header
constexpr uint64_t kPackedTrailerBytes = 64;
constexpr uint64_t kPackedFirstSample = 4096;  // samples begin at a multiple of it
constexpr uint64_t kPackedAlignment = 64;      // of every sample and of the index

enum class PackedContent { kRaw, kEncoded };  // features as they are; image files

struct PackedHeader {
  std::string source;         // name of the data set it was made of
  std::string source_digest;  // of that data set
  std::string split;          // train, val
  int64_t shard = 0;
  int64_t num_shards = 1;
  int64_t first_sample = 0;  // of this shard within the split
  int64_t num_samples = 0;
  PackedContent content = PackedContent::kRaw;
  SampleSpec spec;  // of what was packed; encoded: feature_shape is empty
};

struct PackedEntry {
  uint64_t offset = 0;
  uint64_t bytes = 0;     // features, then targets_per_sample int64
  uint64_t checksum = 0;  // XXH3-64 of these bytes
};

std::string packed_header_json(const PackedHeader& header);
// Throws DataError naming `path` and the key.
PackedHeader parse_packed_header(std::string_view json, const std::string& path);

struct PackedLayout {
  PackedHeader header;
  std::vector<PackedEntry> entries;
  uint64_t header_checksum = 0;
  uint64_t index_checksum = 0;
};
// Reads and checks everything but the samples' own bytes. Throws DataError: another magic or
// version, a file that was cut off or has grown, a checksum that does not fit, an entry that lies
// outside the samples.
PackedLayout parse_packed(std::span<const unsigned char> file, const std::string& path);

// Thread-safe. The file must not be shortened while it is open.
class PackedFile {
 public:
  explicit PackedFile(std::string path);  // throws DataError
  const std::string& path() const { return path_; }
  const PackedHeader& header() const { return layout_.header; }
  const PackedLayout& layout() const { return layout_; }
  uint64_t file_bytes() const { return map_.size(); }
  int64_t size() const { return layout_.header.num_samples; }
  // The features of a sample; its targets are copied. Every byte is compared with its checksum.
  // Throws DataError naming file, sample, got and expected.
  std::span<const unsigned char> sample(int64_t index, std::span<int64_t> targets) const;
  int64_t first_target(int64_t index) const;  // not compared with the checksum

 private:
  std::string path_;
  MappedFile map_;
  PackedLayout layout_;
};

}  // namespace assay::data
