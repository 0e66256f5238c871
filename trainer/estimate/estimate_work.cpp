// Sums over a traced step, and the least time that the known cards need for it.
#include <array>

#include "trainer/estimate/estimate.h"

namespace assay::estimate {

Work work_of(const StepTrace& trace, int64_t grad_accum_steps) {
  const auto repeats = static_cast<double>(grad_accum_steps);
  Work work;
  for (const OperationWork& operation : trace.work) {
    const bool is_update = operation.stage == Stage::kUpdate;
    double& flops = is_update                            ? work.update_flops
                    : operation.stage == Stage::kForward ? work.forward_flops
                                                         : work.backward_flops;
    flops += operation.flops * (is_update ? 1.0 : repeats);
    work.bytes_moved += operation.bytes * (is_update ? 1.0 : repeats);
  }
  // Keys and values of a token are 2 n_layer D numbers.
  const double context =
      trace.samples > 0 ? static_cast<double>(trace.tokens) / static_cast<double>(trace.samples)
                        : 0;
  const double per_token = 6.0 * static_cast<double>(trace.parameters) +
                           6.0 * static_cast<double>(trace.kv_elements_per_token) * context;
  work.formula_flops = per_token * static_cast<double>(trace.tokens) * repeats;
  return work;
}

std::vector<CardBound> card_bounds(const StepTrace& trace, int64_t grad_accum_steps) {
  const auto repeats = static_cast<double>(grad_accum_steps);
  std::vector<CardBound> bounds;
  for (const Card& card : cards()) {
    const StepBound bound = step_bound(trace, card);
    const double step_ms = repeats * (bound.forward_ms + bound.backward_ms) + bound.update_ms;
    const double steps_per_s = step_ms > 0 ? 1e3 / step_ms : 0.0;
    bounds.push_back({.card = std::string(card.name),
                      .step_ms = step_ms,
                      .samples_per_s = steps_per_s * repeats * static_cast<double>(trace.samples),
                      .tokens_per_s = steps_per_s * repeats * static_cast<double>(trace.tokens)});
  }
  return bounds;
}

std::string_view memory_kind_name(size_t kind) {
  constexpr std::array<std::string_view, kNumMemoryKinds> kNames = {
      "weights", "gradients", "optimizer", "batch", "activations", "temporaries", "workspace"};
  return kNames.at(kind);
}

}  // namespace assay::estimate
