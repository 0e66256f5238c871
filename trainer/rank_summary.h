// ranks.json: how the ranks of a run compare: step time, waiting, communication, memory. Written by
// rank 0 with every checkpoint, from what each rank has measured since its session began.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/distributed/gradient_reducer.h"
#include "trainer/distributed/world.h"
#include "trainer/metrics/step_record.h"

namespace assay::trainer {

// Main thread only.
class RankSummary {
 public:
  // The session's first steps, which set things up, are left out of the means.
  void add(const metrics::StepRecord& record);
  // Collective; writes on rank 0. Throws FileError there.
  void write(distributed::World& world, const distributed::GradientReducer& reducer,
             const std::string& run_dir, int64_t step) const;

 private:
  std::string own_text(const distributed::World& world) const;
  int64_t num_steps_ = 0;
  metrics::StepRecord sums_;
  int64_t peak_allocated_bytes_ = 0;
  int64_t host_rss_bytes_ = 0;
};

}  // namespace assay::trainer
