#include "harness/scorecard.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace assay::harness {
namespace {

struct FoundFact {
  std::string workload;
  const Fact* fact = nullptr;
};

// Facts "timing.<workload>.<key>" of every workload, in order.
std::vector<FoundFact> timing_facts(std::span<const ScenarioResult> scenarios,
                                    const std::string& key) {
  std::vector<FoundFact> found;
  const ScenarioResult* timing = find_scenario(scenarios, "timing");
  if (timing == nullptr) return found;
  for (const Fact& fact : timing->facts) {
    const std::vector<std::string> parts = split(fact.name, '.');
    if (parts.size() == 3 && parts[2] == key && fact.value) found.push_back({parts[1], &fact});
  }
  return found;
}

std::string rounded(double value) {
  if (value == 0) return "0";
  const double scale = std::pow(10.0, 3 - std::ceil(std::log10(std::max(std::abs(value), 1e-9))));
  return number_text(std::round(value * scale) / scale);
}

// The greatest (or smallest) of the workloads' values; the text names each.
ScoreLine from_timing(std::span<const ScenarioResult> scenarios, const std::string& score,
                      const std::string& fact_key, bool is_greatest) {
  ScoreLine line;
  line.key = score;
  for (const FoundFact& found : timing_facts(scenarios, fact_key)) {
    const double value = *found.fact->value;
    const bool is_better = !line.value || (is_greatest ? value > *line.value : value < *line.value);
    if (is_better) {
      line.value = value;
      line.unit = found.fact->unit;
      line.note = found.fact->note;
    }
    const std::string& unit = found.fact->unit;
    const std::string shown = unit == "bytes"      ? bytes_text(static_cast<uint64_t>(value))
                              : unit == "fraction" ? cat(rounded(value * 100), " %")
                                                   : cat(rounded(value), " ", unit);
    line.text += cat(line.text.empty() ? "" : ", ", found.workload, " ", shown);
  }
  if (!line.value) line.note = "not measured: scenario timing gave no value";
  return line;
}

ScoreLine headroom(const ScoreLine& peak, const MemoryRoom& room) {
  ScoreLine line;
  line.key = "memory_headroom";
  line.unit = "fraction";
  if (!peak.value || room.bytes == 0) {
    line.note = "not measured: the peak or the memory's size is unknown";
    return line;
  }
  line.value = 1.0 - *peak.value / static_cast<double>(room.bytes);
  line.text = cat(bytes_text(room.bytes), room.is_device ? " of device memory" : " of host memory");
  line.note = "what the peak leaves of it";
  return line;
}

ScoreLine save_time(std::span<const ScenarioResult> scenarios) {
  ScoreLine line = from_timing(scenarios, "save_time", "save_median", true);
  const ScenarioResult* storage = find_scenario(scenarios, "storage");
  const Fact* fact = storage == nullptr ? nullptr : find_fact(*storage, "storage.save_seconds");
  if (line.value || fact == nullptr || !fact->value) return line;
  line.value = *fact->value * 1000;
  line.unit = "ms";
  line.text = cat(rounded(*line.value), " ms");
  line.note = fact->note;
  return line;
}

ScoreLine resume_result(std::span<const ScenarioResult> scenarios) {
  ScoreLine line;
  line.key = "resume_result";
  const ScenarioResult* resume = find_scenario(scenarios, "resume");
  if (resume == nullptr) {
    line.note = "not measured: scenario resume was not run";
    return line;
  }
  line.text = std::string(verdict_name(resume->verdict));
  for (const Check& check : resume->checks) {
    if (check.name != "resume.same_as_uninterrupted") continue;
    line.text = check.measured_text;
    line.note = check.reason;
  }
  return line;
}

struct Counts {
  int64_t judged = 0;
  int64_t failed = 0;
};

Counts count_required(std::span<const ScenarioResult> scenarios) {
  Counts counts;
  for (const ScenarioResult& scenario : scenarios) {
    for (const Check& check : scenario.checks) {
      if (!check.is_required || check.verdict == Verdict::kCouldNotRun) continue;
      ++counts.judged;
      if (check.verdict == Verdict::kFail) ++counts.failed;
    }
  }
  return counts;
}

ScoreLine error_rate(const Counts& counts) {
  ScoreLine line;
  line.key = "error_rate";
  line.unit = "fraction";
  if (counts.judged == 0) {
    line.note = "not measured: no required check was judged";
    return line;
  }
  line.value = static_cast<double>(counts.failed) / static_cast<double>(counts.judged);
  line.text = cat(counts.failed, " of ", counts.judged);
  line.note = "failed over judged required checks";
  return line;
}

// Ranked first: did every run reach its target? (smoke and resume end at targets after stops.)
ScoreLine finished_stably(std::span<const ScenarioResult> scenarios) {
  ScoreLine line;
  line.key = "finished_stably";
  std::string missing;
  bool is_good = true;
  for (const std::string_view name : {"smoke", "timing", "resume"}) {
    const ScenarioResult* scenario = find_scenario(scenarios, name);
    if (scenario == nullptr || scenario->verdict == Verdict::kCouldNotRun) {
      missing += cat(missing.empty() ? "" : ", ", name);
      continue;
    }
    is_good = is_good && scenario->verdict == Verdict::kPass;
  }
  line.text = !is_good ? "no" : missing.empty() ? "yes" : "unknown";
  if (!missing.empty()) {
    line.note = cat("without a verdict: ", missing);
  } else {
    line.note = is_good ? "smoke, timing and resume reached their targets"
                        : "smoke, timing or resume failed";
  }
  return line;
}

}  // namespace

std::vector<ScoreLine> make_scorecard(std::span<const ScenarioResult> scenarios,
                                      const MemoryRoom& room) {
  ScoreLine peak = from_timing(scenarios, "peak_memory",
                               room.is_device ? "memory_device_peak" : "memory_process_peak", true);
  ScoreLine utilisation = from_timing(scenarios, "mean_utilisation", "cpu_utilisation", false);
  if (room.is_device) {
    utilisation = {"mean_utilisation", std::nullopt, "", "",
                   "not measured: GPU utilisation is not sampled in this release"};
  } else if (utilisation.value) {
    utilisation.note = cat("CPU only: ", utilisation.note);
  }
  const ScoreLine room_left = headroom(peak, room);
  return {finished_stably(scenarios),
          peak,
          room_left,
          from_timing(scenarios, "step_time", "step_median", true),
          utilisation,
          from_timing(scenarios, "read_wait", "phase_data_wait", true),
          save_time(scenarios),
          resume_result(scenarios),
          error_rate(count_required(scenarios))};
}

}  // namespace assay::harness
