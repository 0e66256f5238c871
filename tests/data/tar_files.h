// Builders of tar archives, well formed and not.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "base/text.h"
#include "tests/data/idx_files.h"

namespace assay::data {

inline void put_octal(std::string& header, size_t place, int digits, uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%0*llo", digits, static_cast<unsigned long long>(value));
  header.replace(place, static_cast<size_t>(digits), text);
}

inline void sign_header(std::string& header) {
  header.replace(148, 8, "        ");
  uint64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  put_octal(header, 148, 6, sum);
  header[154] = '\0';
}

inline std::string tar_header(const std::string& name, uint64_t bytes, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, std::min<size_t>(name.size(), 100), name.substr(0, 100));
  put_octal(header, 100, 7, 0644);
  put_octal(header, 124, 11, bytes);
  put_octal(header, 136, 11, 0);
  header[156] = type;
  header.replace(257, 5, "ustar");
  header.replace(263, 2, "00");
  sign_header(header);
  return header;
}

inline std::string padded(std::string content) {
  content.resize((content.size() + 511) / 512 * 512, '\0');
  return content;
}

inline std::string tar_member(const std::string& name, const std::string& content,
                              char type = '0') {
  return tar_header(name, content.size(), type) + padded(content);
}

inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::string rest = cat(" ", key, "=", value, "\n");
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return cat(length, rest);
}

inline std::string tar_end() { return std::string(1024, '\0'); }

// Samples first..first+count-1: image "image <i>" and label i % classes, keys of six digits.
inline std::string tar_shard(int64_t first, int64_t count, int64_t classes = 10) {
  std::string content;
  for (int64_t i = first; i < first + count; ++i) {
    char key[32];
    std::snprintf(key, sizeof(key), "%06lld", static_cast<long long>(i));
    content += tar_member(cat("folder/", key, ".jpg"), cat("image ", i));
    content += tar_member(cat("folder/", key, ".cls"), cat(i % classes, "\n"));
  }
  return content + tar_end();
}

}  // namespace assay::data
