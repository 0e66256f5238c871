#include "data/micro_batches.h"

#include "base/fault_points.h"

namespace assay::data {
namespace {

int64_t sum_of_valid_targets(const Dataset& dataset, const std::vector<int64_t>& ids) {
  int64_t sum = 0;
  for (const int64_t id : ids) sum += dataset.valid_targets(id);
  return sum;
}

}  // namespace

MicroBatchPlanner::MicroBatchPlanner(const Dataset& dataset, const Sampler& sampler)
    : dataset_(dataset), sampler_(sampler) {}

void MicroBatchPlanner::start(const DataPosition& position) {
  position_ = position;
  current_ = MicroBatchPlan{};
  current_.micro_step = current_.num_micro_steps;  // no window is open
  previous_id_.reset();
  is_repeat_pending_ = false;
}

void MicroBatchPlanner::open_window() {
  current_.window = sampler_.window_at(position_);
  current_.micro_step = 0;
  // Rounded up over the whole world, so that every rank does the same number of micro-steps.
  const int64_t per_micro_step = sampler_.config().micro_batch_size * sampler_.config().world_size;
  current_.num_micro_steps = (current_.window.count + per_micro_step - 1) / per_micro_step;
  current_.step_valid_targets =
      sum_of_valid_targets(dataset_, sampler_.window_ids(current_.window));
  position_ = current_.window.next;
}

MicroBatchPlan MicroBatchPlanner::next() {
  if (current_.micro_step == current_.num_micro_steps) open_window();
  MicroBatchPlan plan = current_;
  plan.ids = sampler_.rank_ids(plan.window, plan.micro_step);
  plant_defects(plan.ids);
  plan.valid_targets = sum_of_valid_targets(dataset_, plan.ids);
  ++current_.micro_step;
  return plan;
}

void MicroBatchPlanner::plant_defects(std::vector<int64_t>& ids) {
  for (int64_t& id : ids) {
    if (is_fault_due("defect.skip_sample")) id = (id + 1) % dataset_.size();
    if (is_fault_due("defect.repeat_sample")) is_repeat_pending_ = true;
    if (is_repeat_pending_ && previous_id_) {  // the very first sample has nothing to repeat
      id = *previous_id_;
      is_repeat_pending_ = false;
    }
    previous_id_ = id;
  }
}

}  // namespace assay::data
