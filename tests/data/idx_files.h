// Builders of IDX content, plain and packed.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <zlib.h>

#include "base/files.h"

namespace assay::data {

inline std::string big_endian_bytes(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

// Pixels count up from 0, modulo 256.
inline std::string idx_images(uint32_t count, uint32_t height, uint32_t width) {
  std::string content = big_endian_bytes(0x803) + big_endian_bytes(count) +
                        big_endian_bytes(height) + big_endian_bytes(width);
  for (uint32_t i = 0; i < count * height * width; ++i) content.push_back(static_cast<char>(i));
  return content;
}

inline std::string idx_labels(const std::vector<int>& labels) {
  std::string content =
      big_endian_bytes(0x801) + big_endian_bytes(static_cast<uint32_t>(labels.size()));
  for (const int label : labels) content.push_back(static_cast<char>(label));
  return content;
}

inline std::string gzipped(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, content.size()) + 64, '\0');
  std::string input = content;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline void write_bytes(const std::string& path, const std::string& content) {
  create_directories(parent_path(path));
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace assay::data
