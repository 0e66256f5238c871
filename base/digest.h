// SHA-256 (provenance, state digests; SHA extensions used where the CPU has them) and XXH3-128
// (integrity of files and tensors at disk speed).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace assay {

// FIPS 180-4. Thread-compatible.
class Sha256 {
 public:
  Sha256();
  void update(const void* bytes, size_t count);
  void update(std::string_view text) { update(text.data(), text.size()); }
  // 64 lower-case hex digits; the object must not be used afterwards.
  std::string hex();

 private:
  void compress(const unsigned char* blocks, size_t block_count);
  std::array<uint32_t, 8> state_;
  std::array<unsigned char, 64> pending_;
  size_t pending_count_ = 0;
  uint64_t total_bytes_ = 0;
};

std::string sha256_hex(const void* bytes, size_t count);
std::string sha256_hex(std::string_view text);
// Throws Error(kData) with path and errno text if the file cannot be read.
std::string sha256_file_hex(const std::string& path);

// Streaming XXH3 with 128-bit result, canonical (big-endian) hex of 32 digits. Thread-compatible.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;
  void reset();
  void update(const void* bytes, size_t count);
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string xxh3_hex(const void* bytes, size_t count);
// XXH3 with 64-bit result, for many small pieces.
uint64_t xxh3_64(const void* bytes, size_t count);

}  // namespace assay
