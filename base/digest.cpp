#include "base/digest.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fcntl.h>

#define XXH_INLINE_ALL
#include <xxhash/xxhash.h>

#include "base/error.h"
#include "base/file_calls.h"
#include "base/files.h"
#include "base/sha256_blocks.h"
#include "base/text.h"

namespace assay {
namespace {

constexpr size_t kBlockBytes = 64;

std::string canonical_hex(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  return hex_encode(canonical.digest);
}

}  // namespace

// Initial value, FIPS 180-4 section 5.3.3.
Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      pending_{} {}

void Sha256::compress(const unsigned char* blocks, size_t block_count) {
  static const bool is_accelerated = has_sha_extensions();
  if (is_accelerated) {
    sha256_compress_extensions(state_, blocks, block_count);
  } else {
    sha256_compress_portable(state_, blocks, block_count);
  }
}

void Sha256::update(const void* bytes, size_t count) {
  if (count == 0) return;
  const auto* next = static_cast<const unsigned char*>(bytes);
  total_bytes_ += count;
  if (pending_count_ > 0) {
    const size_t taken = std::min(count, kBlockBytes - pending_count_);
    std::memcpy(pending_.data() + pending_count_, next, taken);
    pending_count_ += taken;
    next += taken;
    count -= taken;
    if (pending_count_ < kBlockBytes) return;
    compress(pending_.data(), 1);
    pending_count_ = 0;
  }
  const size_t block_count = count / kBlockBytes;
  compress(next, block_count);
  pending_count_ = count % kBlockBytes;
  if (pending_count_ > 0) {
    std::memcpy(pending_.data(), next + block_count * kBlockBytes, pending_count_);
  }
}

std::string Sha256::hex() {
  const uint64_t total_bits = total_bytes_ * 8;
  std::array<unsigned char, 2 * kBlockBytes> tail{};
  std::memcpy(tail.data(), pending_.data(), pending_count_);
  tail[pending_count_] = 0x80;
  const size_t tail_bytes = pending_count_ + 9 <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
  for (size_t i = 0; i < 8; ++i) {
    tail[tail_bytes - 1 - i] = static_cast<unsigned char>(total_bits >> (8 * i));
  }
  compress(tail.data(), tail_bytes / kBlockBytes);
  std::array<unsigned char, 32> digest;
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<unsigned char>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return hex_encode(digest);
}

std::string sha256_hex(const void* bytes, size_t count) {
  Sha256 digest;
  digest.update(bytes, count);
  return digest.hex();
}

std::string sha256_hex(std::string_view text) { return sha256_hex(text.data(), text.size()); }

std::string sha256_file_hex(const std::string& path) {
  try {
    const Descriptor file = open_descriptor(path, O_RDONLY, "open");
    constexpr size_t kChunkBytes = size_t{1} << 18;
    const auto chunk = std::make_unique<unsigned char[]>(kChunkBytes);
    Sha256 digest;
    while (const size_t count = read_some(file, chunk.get(), kChunkBytes, path)) {
      digest.update(chunk.get(), count);
    }
    return digest.hex();
  } catch (const FileError& error) {
    throw Error(ExitCode::kData, cat(error.what(), " (for its SHA-256)"));
  }
}

struct Xxh3::State {
  XXH3_state_t value;
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) { reset(); }

Xxh3::~Xxh3() = default;

void Xxh3::reset() { XXH3_128bits_reset(&state_->value); }

void Xxh3::update(const void* bytes, size_t count) {
  if (count > 0) XXH3_128bits_update(&state_->value, bytes, count);
}

std::string Xxh3::hex() const { return canonical_hex(XXH3_128bits_digest(&state_->value)); }

uint64_t xxh3_64(const void* bytes, size_t count) { return XXH3_64bits(bytes, count); }

std::string xxh3_hex(const void* bytes, size_t count) {
  return canonical_hex(XXH3_128bits(bytes, count));
}

}  // namespace assay
