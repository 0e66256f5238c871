// Writes one packed shard; it appears under its name when it is complete. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/output_file.h"
#include "data/packed_file.h"

namespace assay::data {

class PackedWriter {
 public:
  // header.num_samples must be what is added. Throws FileError.
  PackedWriter(const std::string& path, const PackedHeader& header);
  void add(std::span<const unsigned char> features, std::span<const int64_t> targets);
  void commit();

 private:
  void pad_to(uint64_t alignment);

  PackedHeader header_;
  OutputFile output_;
  uint64_t header_checksum_ = 0;
  std::vector<PackedEntry> entries_;
  std::vector<unsigned char> sample_;
};

}  // namespace assay::data
