// The two ways to compress SHA-256 blocks; Sha256 picks one at run time. Internal to base.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace assay {

using Sha256State = std::array<uint32_t, 8>;

// Round constants, FIPS 180-4 section 4.2.2.
extern const std::array<uint32_t, 64> kSha256Rounds;

void sha256_compress_portable(Sha256State& state, const unsigned char* blocks, size_t block_count);

// True if this CPU (and this build) has the SHA extensions with SSSE3 and SSE4.1.
bool has_sha_extensions();
// Call only if has_sha_extensions().
void sha256_compress_extensions(Sha256State& state, const unsigned char* blocks,
                                size_t block_count);

}  // namespace assay
