// One line of metrics.jsonl. Names are API (contract.md). Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::metrics {

struct PhaseTimes {  // milliseconds on one timeline; they add up to time_ms
  double data_wait_ms = 0;
  double h2d_ms = 0;
  double forward_ms = 0;
  double backward_ms = 0;
  double comm_ms = 0;
  double optimizer_ms = 0;
  double checkpoint_ms = 0;
  double other_ms = 0;
};

struct MemoryUse {
  int64_t allocated_bytes = 0;  // device allocator; on CPU 0
  int64_t peak_allocated_bytes = 0;
  int64_t reserved_bytes = 0;
  int64_t host_rss_bytes = 0;
};

struct StepRecord {
  int64_t step = 0;  // update attempts so far
  double epoch = 0;  // epochs finished, with fraction
  int64_t updates = 0;
  int64_t skipped = 0;
  double loss = 0;  // mean over the global batch; may be non-finite
  double learning_rate = 0;
  double grad_norm = 0;  // before clipping; may be non-finite
  double loss_scale = 1;
  int64_t samples_seen = 0;
  int64_t tokens_seen = 0;
  double time_ms = 0;
  PhaseTimes phases;
  double comm_total_ms = 0;  // several ranks: reductions of gradients, hidden or not
  MemoryUse memory;
  std::string ids_digest;  // SHA-256 over the ids of this update
};

struct EvalRecord {  // "event":"eval"
  int64_t step = 0;
  double epoch = 0;
  double loss = 0;      // mean over valid targets
  double accuracy = 0;  // fraction of targets predicted right
  int64_t samples = 0;  // every held-out sample exactly once
  int64_t targets = 0;
  double time_ms = 0;
};

// JSON line without the newline. Non-finite numbers become null, their "_hex" says which, and
// "nonfinite" lists them.
std::string to_json_line(const StepRecord& record);
std::string to_json_line(const EvalRecord& record);

// A metrics file as read back. Tolerates a torn last line (a run still writing, or killed).
struct MetricsFile {
  std::vector<StepRecord> steps;
  std::vector<EvalRecord> evals;
  bool has_torn_tail = false;
};
// Throws Error(kCheckpoint) naming file and line for anything else that is wrong.
MetricsFile read_metrics(const std::string& path);

// Cuts a log at a checkpoint: whole lines with step <= `step` stay, the rest (also a torn tail)
// goes to `later`. Works for metrics.jsonl and ids-rank<r>.jsonl.
struct SplitLog {
  std::string kept;
  std::string later;
};
SplitLog split_log_at_step(std::string_view text, int64_t step);

}  // namespace assay::metrics
