// SplitMix64 (Steele, Lea & Flood 2014, fig. 14): a fixed mixing of 64 bits in which every input
// bit reaches every output bit. Part of what makes sample order reproducible: never change it.
#pragma once

#include <cstdint>

namespace assay::data {

// 2^64 divided by the golden ratio: SplitMix64's increment.
constexpr uint64_t kMixIncrement = 0x9e3779b97f4a7c15ULL;

// A bijection.
constexpr uint64_t mix64(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace assay::data
