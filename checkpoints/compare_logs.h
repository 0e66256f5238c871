// The logs of two runs, step by step: metrics.jsonl without its times, and the ids ledgers.
// Internal to checkpoints/. The lines are read as plain JSON: any field that a later version adds
// is compared too.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "checkpoints/compare.h"

namespace assay::checkpoints {

inline constexpr std::string_view kMetricsFile = "metrics.jsonl";

// Appends the first difference of every field of metrics.jsonl. `saved_steps` are steps at which
// one of the runs has a checkpoint: after these, a wrong resume is the likely reason. Throws
// CheckpointError naming file and line if a log is not JSON lines.
void compare_metrics(const std::string& left, const std::string& right,
                     const std::set<int64_t>& saved_steps, Comparison& comparison);

// Appends the first difference of each pair of ledgers; where the numbers of ranks differ, of the
// ids of all ranks together.
void compare_ledgers(const std::string& left, const std::string& right, Comparison& comparison);

}  // namespace assay::checkpoints
