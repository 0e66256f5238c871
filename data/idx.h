// The IDX format of the MNIST family: big-endian header, then unsigned bytes.
// http://yann.lecun.com/exdb/mnist ("THE IDX FILE FORMAT")
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace assay::data {

enum class IdxKind { kImages, kLabels };  // three dimensions; one

struct IdxArray {
  std::vector<int64_t> shape;  // {N, H, W} or {N}, all >= 1
  std::string content;         // the whole unpacked file
  size_t header_bytes = 0;
  SourceFile source;  // bytes and sha256 are those of the unpacked content
  std::span<const unsigned char> values() const;
};

// What the first bytes of a file say it is: "an IDX label file (magic 2049)", "a gzip file", ...
std::string idx_appearance(std::string_view bytes);

// `origin` names the content in messages. Throws DataError with got, expected and what the content
// looks like instead.
IdxArray parse_idx(std::string content, const std::string& origin, IdxKind kind);

// Reads a file, unpacking it if its name ends in ".gz". Throws DataError.
IdxArray read_idx_file(const std::string& path, IdxKind kind);

}  // namespace assay::data
