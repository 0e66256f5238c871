// The bottleneck in words: what it is, the numbers that show it, and the one next thing to try.
// Pure functions over a timing run.
#pragma once

#include <string>
#include <vector>

#include "harness/check.h"
#include "harness/step_timing.h"

namespace assay::harness {

struct DiagnosisInput {
  std::string workload;
  const RunTiming& run;
  double cpu_utilisation = 0;  // fraction of the usable CPUs, while stepping
  double other_programs = 0;   // their share of the CPUs during the run
  bool is_gpu_present = false;
  double other_limit = 0;      // the limits are those of the suite's checks
  double data_wait_limit = 0;  // data wait over forward
  double save_limit = 0;       // saves over the run
  double utilisation_limit = 0;
  double other_programs_limit = 0;
};

// At least one entry: every cause whose numbers pass its limit, largest share first; else what
// bounds the step ("compute bound"), and that nothing needs fixing.
std::vector<Advice> diagnose(const DiagnosisInput& input);

}  // namespace assay::harness
