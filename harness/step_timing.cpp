#include "harness/step_timing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace assay::harness {
namespace {

using metrics::StepRecord;

double step_ms(const StepRecord& record) { return record.time_ms - record.phases.checkpoint_ms; }

double phase_sum_ms(const StepRecord& record) {
  double sum = 0;
  for (const PhaseField& phase : kPhaseFields) sum += record.phases.*phase.milliseconds;
  return sum;
}

std::vector<PhaseShare> share_phases(std::span<const StepRecord> window) {
  double total = 0;
  for (const StepRecord& record : window) total += step_ms(record);
  std::vector<PhaseShare> shares;
  for (const PhaseField& phase : kPhaseFields) {
    if (phase.name == "checkpoint") continue;
    std::vector<double> times;
    double sum = 0;
    for (const StepRecord& record : window) {
      times.push_back(record.phases.*phase.milliseconds);
      sum += times.back();
    }
    shares.push_back({std::string(phase.name), median(times), total > 0 ? sum / total : 0});
  }
  return shares;
}

void add_rates(std::span<const StepRecord> steps, size_t first, RunTiming& run) {
  // Work of the window = counters at its end minus those before its first step.
  const StepRecord& last = steps.back();
  const int64_t samples_before = first == 0 ? 0 : steps[first - 1].samples_seen;
  const int64_t tokens_before = first == 0 ? 0 : steps[first - 1].tokens_seen;
  double seconds = 0;
  for (const StepRecord& record : steps.subspan(first)) seconds += step_ms(record) / 1000;
  if (seconds <= 0) return;
  run.samples_per_second = static_cast<double>(last.samples_seen - samples_before) / seconds;
  run.tokens_per_second = static_cast<double>(last.tokens_seen - tokens_before) / seconds;
}

void add_whole_run(std::span<const StepRecord> steps, RunTiming& run) {
  for (const StepRecord& record : steps) {
    run.total_step_seconds += record.time_ms / 1000;
    run.checkpoint_seconds += record.phases.checkpoint_ms / 1000;
    if (record.phases.checkpoint_ms > 0) run.save_ms.push_back(record.phases.checkpoint_ms);
    run.peak_rss_bytes = std::max(run.peak_rss_bytes, record.memory.host_rss_bytes);
    run.peak_allocated_bytes =
        std::max(run.peak_allocated_bytes, record.memory.peak_allocated_bytes);
    const double gap =
        record.time_ms > 0 ? std::abs(phase_sum_ms(record) - record.time_ms) / record.time_ms : 1.0;
    if (gap > run.worst_gap_fraction || run.worst_gap_step == 0) {
      run.worst_gap_fraction = gap;
      run.worst_gap_step = record.step;
    }
  }
}

}  // namespace

RunTiming time_run(std::span<const StepRecord> steps) {
  if (steps.empty()) throw DataError("metrics.jsonl holds no step records, so nothing was timed");
  std::vector<double> times;
  for (const StepRecord& record : steps) times.push_back(step_ms(record));
  RunTiming run;
  run.warm_up = find_warm_up(times);
  const size_t first = run.warm_up.length;
  const auto window = steps.subspan(first);
  run.first_steady_step = window.front().step;
  run.last_step = window.back().step;
  run.step_ms = summarize(std::span(times).subspan(first));
  run.phases = share_phases(window);
  add_rates(steps, first, run);
  add_whole_run(steps, run);
  run.rss_after_first_step_bytes = steps.front().memory.host_rss_bytes;
  std::vector<double> rss;
  for (const StepRecord& record : window) {
    rss.push_back(static_cast<double>(record.memory.host_rss_bytes));
  }
  run.steady_rss_bytes = static_cast<int64_t>(median(rss));
  return run;
}

TimingOfRuns combine(std::span<const RunTiming> runs, std::span<const double> steady_step_ms) {
  TimingOfRuns result;
  result.step_ms = summarize(steady_step_ms);
  std::vector<double> medians;
  for (const RunTiming& run : runs) {
    medians.push_back(run.step_ms.median);
    result.is_steady = result.is_steady && run.warm_up.is_steady;
  }
  const Summary spread = summarize(medians);
  result.run_spread_fraction = spread.median > 0 ? (spread.max - spread.min) / spread.median : 0;
  return result;
}

double phase_share(const RunTiming& run, std::string_view phase) {
  for (const PhaseShare& share : run.phases) {
    if (share.name == phase) return share.share_fraction;
  }
  throw InternalError(cat("no phase is named ", phase));
}

double phase_median_ms(const RunTiming& run, std::string_view phase) {
  for (const PhaseShare& share : run.phases) {
    if (share.name == phase) return share.median_ms;
  }
  throw InternalError(cat("no phase is named ", phase));
}

std::vector<double> steady_step_times(std::span<const StepRecord> steps, const RunTiming& run) {
  std::vector<double> times;
  for (const StepRecord& record : steps) {
    if (record.step >= run.first_steady_step) times.push_back(step_ms(record));
  }
  return times;
}

}  // namespace assay::harness
