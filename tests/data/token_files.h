// Builders of token files.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/data/idx_files.h"

namespace assay::data {

template <class Token>
std::string token_bytes(const std::vector<int64_t>& ids) {
  std::string bytes;
  for (const int64_t id : ids) {
    const auto token = static_cast<Token>(id);
    char raw[sizeof(token)];
    std::memcpy(raw, &token, sizeof(token));
    bytes.append(raw, sizeof(token));
  }
  return bytes;
}

// llm.c's header, 256 int32.
inline std::string llmc_header(int32_t magic, int32_t version, int64_t count) {
  std::vector<int64_t> words(256, 0);
  words[0] = magic;
  words[1] = version;
  words[2] = count;
  return token_bytes<int32_t>(words);
}

// first, first + 1, ...
inline std::vector<int64_t> counting(int64_t count, int64_t first = 0) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(first + i);
  return ids;
}

}  // namespace assay::data
