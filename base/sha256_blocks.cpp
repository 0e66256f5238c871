#include "base/sha256_blocks.h"

#include <bit>

#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace assay {

const std::array<uint32_t, 64> kSha256Rounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

namespace {

uint32_t big_endian_word(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 |
         uint32_t{bytes[3]};
}

// FIPS 180-4 section 6.2.2, names as there.
void compress_one(Sha256State& state, const unsigned char* block) {
  std::array<uint32_t, 64> w;
  for (size_t t = 0; t < 16; ++t) w[t] = big_endian_word(block + 4 * t);
  for (size_t t = 16; t < 64; ++t) {
    const uint32_t x = w[t - 15];
    const uint32_t y = w[t - 2];
    const uint32_t sigma0 = std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3);
    const uint32_t sigma1 = std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10);
    w[t] = sigma1 + w[t - 7] + sigma0 + w[t - 16];
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t t = 0; t < 64; ++t) {
    const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + kSha256Rounds[t] + w[t];
    const uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const Sha256State change = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += change[i];
}

}  // namespace

void sha256_compress_portable(Sha256State& state, const unsigned char* blocks, size_t block_count) {
  for (size_t i = 0; i < block_count; ++i) compress_one(state, blocks + 64 * i);
}

#if defined(__x86_64__)

bool has_sha_extensions() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
  const bool has_ssse3 = (ecx & (1U << 9)) != 0;
  const bool has_sse41 = (ecx & (1U << 19)) != 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  const bool has_sha = (ebx & (1U << 29)) != 0;
  return has_ssse3 && has_sse41 && has_sha;
}

namespace {

__attribute__((target("sha,ssse3,sse4.1"))) __m128i load_words(const void* address) {
  return _mm_loadu_si128(static_cast<const __m128i*>(address));
}

// The state as sha256rnds2 wants it: registers {a, b, e, f} and {c, d, g, h}.
struct PackedState {
  __m128i abef;
  __m128i cdgh;
};

__attribute__((target("sha,ssse3,sse4.1"))) PackedState pack(const Sha256State& state) {
  const __m128i cdab = _mm_shuffle_epi32(load_words(state.data()), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(load_words(state.data() + 4), 0x1B);
  return {_mm_alignr_epi8(cdab, efgh, 8), _mm_blend_epi16(efgh, cdab, 0xF0)};
}

__attribute__((target("sha,ssse3,sse4.1"))) void unpack(const PackedState& packed,
                                                        Sha256State& state) {
  const __m128i feba = _mm_shuffle_epi32(packed.abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(packed.cdgh, 0xB1);
  void* low = state.data();
  void* high = state.data() + 4;
  _mm_storeu_si128(static_cast<__m128i*>(low), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(static_cast<__m128i*>(high), _mm_alignr_epi8(dchg, feba, 8));
}

__attribute__((target("sha,ssse3,sse4.1"))) void compress_packed(PackedState& state,
                                                                 const unsigned char* block) {
  const __m128i byte_order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const PackedState before = state;
  __m128i w[4];  // a ring of the last 16 schedule words
  for (int i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load_words(block + 16 * i), byte_order);
#pragma GCC unroll 16
  for (int group = 0; group < 16; ++group) {  // four rounds each
    __m128i& current = w[group & 3];
    if (group >= 4) {
      const __m128i& previous = w[(group + 3) & 3];
      const __m128i minus_7 = _mm_alignr_epi8(previous, w[(group + 2) & 3], 4);
      const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(current, w[(group + 1) & 3]), minus_7);
      current = _mm_sha256msg2_epu32(sum, previous);
    }
    __m128i sums =
        _mm_add_epi32(current, load_words(&kSha256Rounds[4 * static_cast<size_t>(group)]));
    state.cdgh = _mm_sha256rnds2_epu32(state.cdgh, state.abef, sums);
    sums = _mm_shuffle_epi32(sums, 0x0E);
    state.abef = _mm_sha256rnds2_epu32(state.abef, state.cdgh, sums);
  }
  state.abef = _mm_add_epi32(state.abef, before.abef);
  state.cdgh = _mm_add_epi32(state.cdgh, before.cdgh);
}

}  // namespace

__attribute__((target("sha,ssse3,sse4.1"))) void sha256_compress_extensions(
    Sha256State& state, const unsigned char* blocks, size_t block_count) {
  PackedState packed = pack(state);
  for (size_t i = 0; i < block_count; ++i) compress_packed(packed, blocks + 64 * i);
  unpack(packed, state);
}

#else

bool has_sha_extensions() { return false; }

void sha256_compress_extensions(Sha256State&, const unsigned char*, size_t) {
  throw InternalError("sha256_compress_extensions called on a CPU without SHA extensions");
}

#endif

}  // namespace assay
