// What the step records of timing runs say: the steady window, its statistics, and how the phases
// share the step. Pure functions over metrics; no files.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/statistics.h"
#include "trainer/metrics/step_record.h"

namespace assay::harness {

// The phases of a step, in the order and with the names of contract.md.
struct PhaseField {
  std::string_view name;
  double metrics::PhaseTimes::*milliseconds;
};
inline constexpr std::array<PhaseField, 8> kPhaseFields = {
    {{"data_wait", &metrics::PhaseTimes::data_wait_ms},
     {"h2d", &metrics::PhaseTimes::h2d_ms},
     {"forward", &metrics::PhaseTimes::forward_ms},
     {"backward", &metrics::PhaseTimes::backward_ms},
     {"comm", &metrics::PhaseTimes::comm_ms},
     {"optimizer", &metrics::PhaseTimes::optimizer_ms},
     {"checkpoint", &metrics::PhaseTimes::checkpoint_ms},
     {"other", &metrics::PhaseTimes::other_ms}}};

struct PhaseShare {
  std::string name;           // as in metrics.jsonl: "forward"
  double median_ms = 0;       // over the steady window
  double share_fraction = 0;  // of the summed step time of the window
};

struct RunTiming {  // one run
  WarmUp warm_up;   // over time_ms without the checkpoint phase
  int64_t first_steady_step = 0;
  int64_t last_step = 0;
  Summary step_ms;  // of the steady window, without the checkpoint phase
  double samples_per_second = 0;
  double tokens_per_second = 0;
  std::vector<PhaseShare> phases;
  double worst_gap_fraction = 0;  // greatest |sum of phases - time_ms| / time_ms of any step
  int64_t worst_gap_step = 0;
  double total_step_seconds = 0;  // of all steps, saves included
  double checkpoint_seconds = 0;
  std::vector<double> save_ms;  // checkpoint phase of the steps that saved
  int64_t rss_after_first_step_bytes = 0;
  int64_t peak_rss_bytes = 0;    // over all step records
  int64_t steady_rss_bytes = 0;  // median over the steady window
  int64_t peak_allocated_bytes = 0;
};

// Saving is not stepping: the checkpoint phase is taken out of a step's time and reported apart.
// Throws DataError if there are no step records.
RunTiming time_run(std::span<const metrics::StepRecord> steps);

// Median step time over the steady windows of several equal runs, and how far the runs' own medians
// lie apart (max - min, as a fraction of their median).
struct TimingOfRuns {
  Summary step_ms;
  double run_spread_fraction = 0;
  bool is_steady = true;  // every run reached a steady window
};
TimingOfRuns combine(std::span<const RunTiming> runs, std::span<const double> steady_step_ms);

double phase_share(const RunTiming& run, std::string_view phase);
double phase_median_ms(const RunTiming& run, std::string_view phase);

// time_ms without the checkpoint phase, of the steady window.
std::vector<double> steady_step_times(std::span<const metrics::StepRecord> steps,
                                      const RunTiming& run);

}  // namespace assay::harness
