// All packed shards of one split, in order, as one row of samples.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/packed_file.h"

namespace assay::data {

// Thread-safe once made.
class PackedSet {
 public:
  // Throws DataError unless the files are all shards of one split, each once: another number of
  // shards, another source, a gap. No files: an empty set.
  PackedSet(const std::vector<std::string>& paths, std::string_view split);
  int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  const PackedHeader& header() const { return files_.at(0).header(); }  // not of an empty set
  const std::vector<PackedFile>& files() const { return files_; }
  // As PackedFile::sample.
  std::span<const unsigned char> sample(int64_t id, std::span<int64_t> targets) const;
  int64_t target(int64_t id) const;      // the first one, not compared with the checksum
  std::string origin(int64_t id) const;  // "packed shard x/train-00000.packed: sample 3"

 private:
  struct Place {
    const PackedFile* file = nullptr;
    int64_t index = 0;
  };
  Place place_of(int64_t id) const;

  std::vector<PackedFile> files_;
  std::vector<int64_t> ends_;  // of each file: samples up to and with it
};

// Throws DataError unless the set holds samples of the same kind and source as `header` says.
void check_same_kind(const PackedHeader& header, const PackedSet& set);

}  // namespace assay::data
