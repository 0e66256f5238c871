// Random numbers of one sample in one epoch for one purpose: a pure function of these, whoever
// reads the sample and whenever. Part of what makes augmented pixels reproducible: never change it.
#pragma once

#include <cstdint>

#include "data/dataset.h"
#include "data/mix64.h"

namespace assay::data {

// Every use of chance has its own stream, so that a new one moves no other.
enum class Purpose : uint64_t { kCrop = 1, kFlip = 2 };

class SampleRandom {
 public:
  SampleRandom(const ReadContext& context, int64_t sample, Purpose purpose)
      : state_(mix64(mix64(mix64(mix64(context.seed + kMixIncrement) +
                                 static_cast<uint64_t>(context.epoch) + kMixIncrement) +
                           static_cast<uint64_t>(sample) + kMixIncrement) +
                     static_cast<uint64_t>(purpose) * kMixIncrement)) {}

  // In [low, high).
  double uniform(double low, double high) {
    constexpr double kUnit = 1.0 / static_cast<double>(uint64_t{1} << 53);
    return low + (high - low) * (static_cast<double>(next() >> 11) * kUnit);
  }
  // In [0, bound); bound >= 1. A remainder of 64 bits: uneven by at most bound / 2^64.
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(next() % static_cast<uint64_t>(bound));
  }

 private:
  uint64_t next() { return mix64(state_ += kMixIncrement); }

  uint64_t state_;
};

}  // namespace assay::data
