// Is a resumed run the same run as one that was never stopped? Compares them field by field and
// puts the answer into one of three classes that are never mixed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::harness {

enum class Continuity {
  kBitEqual,         // every compared field and both state digests are equal
  kWithinTolerance,  // only floating-point values differ, none by more than the tolerance
  kBroken,           // anything else: steps, samples, counters, RNG, or a larger difference
};

std::string_view continuity_name(Continuity continuity);  // "bit-equal", ...

struct ContinuityVerdict {
  Continuity continuity = Continuity::kBroken;
  double greatest_relative = 0;  // over floating-point fields that differ
  std::string first_difference;  // empty if bit-equal; where, field, both values, likely reason
  int64_t compared_steps = 0;
  int64_t compared_checkpoints = 0;
  int64_t compared_tensors = 0;
};

// `control` was never interrupted. Compares metrics (each step once, all steps of the control), ids
// ledgers, checkpoints of common steps and result.json's state digest. Throws DataError or
// CheckpointError if one of them cannot be read.
ContinuityVerdict judge_continuity(const std::string& control, const std::string& resumed,
                                   double tolerance);

}  // namespace assay::harness
