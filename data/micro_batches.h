// Which samples make up each micro-batch of this rank, in order, without end. The loader hands
// these plans to its workers; the planted defects of the harness's self-test sit here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/dataset.h"
#include "data/sampler.h"

namespace assay::data {

struct MicroBatchPlan {
  StepWindow window;
  int64_t micro_step = 0;
  int64_t num_micro_steps = 1;     // of the window, equal on all ranks
  int64_t step_valid_targets = 0;  // over all ranks and micro-steps of the window
  int64_t valid_targets = 0;       // of this micro-batch
  std::vector<int64_t> ids;
};

// Thread-compatible. Borrows data set and sampler.
class MicroBatchPlanner {
 public:
  MicroBatchPlanner(const Dataset& dataset, const Sampler& sampler);
  void start(const DataPosition& position);
  MicroBatchPlan next();

 private:
  void open_window();
  // Fault points defect.skip_sample and defect.repeat_sample, one hit a sample of this rank.
  void plant_defects(std::vector<int64_t>& ids);

  const Dataset& dataset_;
  const Sampler& sampler_;
  DataPosition position_;
  MicroBatchPlan current_;  // of the open window; ids unused
  std::optional<int64_t> previous_id_;
  bool is_repeat_pending_ = false;
};

}  // namespace assay::data
