// Everything that `assay estimate` says, as values: assembled in estimate.cpp, shown by
// estimate_text() and estimate_json(). No torch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/estimate/card_table.h"
#include "trainer/estimate/memory_plan.h"
#include "trainer/estimate/scaling_model.h"
#include "trainer/estimate/traced_step.h"

namespace assay::estimate {

struct RunFacts {
  std::string model;
  std::string precision;
  std::string optimizer;
  int64_t batch_size = 0;
  int64_t grad_accum_steps = 1;
  bool is_gpu = true;  // what the traced step runs on
};

struct Work {  // of one step of one rank: all micro-steps and the update
  double forward_flops = 0;
  double backward_flops = 0;
  double update_flops = 0;
  double bytes_moved = 0;
  // GPTs only, forward and backward by the formula that published utilisations are based on: 6 N +
  // 12 n_layer D T a token (Chowdhery et al. 2022, appendix B). It counts what a causal mask spares
  // and not what the fused attention computes twice.
  double formula_flops = 0;
  double total_flops() const { return forward_flops + backward_flops + update_flops; }
};

struct CardBound {
  std::string card;
  double step_ms = 0;
  double samples_per_s = 0;
  double tokens_per_s = 0;  // 0 for images
};

struct CardFit {
  int64_t gb = 0;
  std::optional<Rung> rung;          // nothing: not even the last rung fits
  std::vector<std::string> missing;  // rungs that were passed over
};

// The device that is here.
struct Here {
  std::string device;        // "NVIDIA H200", "CPU"
  int64_t memory_bytes = 0;  // that this run may use
  int64_t needed_bytes = 0;
  bool fits() const { return needed_bytes <= memory_bytes; }
};

struct ScalingRow {
  ScalingPrediction prediction;
  int64_t peak_bytes = 0;  // of one rank
};

struct Scaling {
  std::string step_source;  // where the step's time comes from
  std::string link_source;
  Cluster cluster;
  RankStep step;
  std::vector<ScalingRow> rows;
  std::optional<int64_t> below_bound;  // first number of ranks under kEfficiencyBound
};
inline constexpr double kEfficiencyBound = 0.9;

struct Estimate {
  RunFacts run;
  StepTrace trace;
  Work work;
  std::vector<CardBound> bounds;
  std::vector<CardFit> fits;  // empty where no GPU can run it
  Here here;
  HostMemory host;
  int64_t host_available_bytes = 0;
  CheckpointRoom room;
  std::string room_folder;
  int64_t room_free_bytes = 0;
  int64_t measured_peak_bytes = 0;  // of --from-run; 0: none
  std::vector<KvCacheRow> kv_cache;
  std::optional<Scaling> scaling;
};

Work work_of(const StepTrace& trace, int64_t grad_accum_steps);
std::vector<CardBound> card_bounds(const StepTrace& trace, int64_t grad_accum_steps);

std::string estimate_text(const Estimate& estimate);
std::string estimate_json(const Estimate& estimate);  // one object, newline at the end

// "weights", "gradients", ...: for text; with "_bytes" behind it the JSON's member.
std::string_view memory_kind_name(size_t kind);

}  // namespace assay::estimate
