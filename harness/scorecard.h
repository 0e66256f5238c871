// The scorecard (mission B13): what a reader compares first, taken from the scenarios' facts. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/check.h"

namespace assay::harness {

struct ScoreLine {
  std::string key;  // "peak_memory"; part of the format of report.json
  std::optional<double> value;
  std::string text;
  std::string unit;
  std::string note;  // how, over what; why there is no value
};

struct MemoryRoom {
  uint64_t bytes = 0;  // of the device, or of this host within its cgroup
  bool is_device = false;
};

// In order: finished_stably, peak_memory, memory_headroom, step_time, mean_utilisation, read_wait,
// save_time, resume_result, error_rate. A line without a measurement says why.
std::vector<ScoreLine> make_scorecard(std::span<const ScenarioResult> scenarios,
                                      const MemoryRoom& room);

}  // namespace assay::harness
