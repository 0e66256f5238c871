// Rank 0's measurements on their way to disk: metrics.jsonl, and TensorBoard's event file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/files.h"
#include "trainer/metrics/step_record.h"
#include "trainer/metrics/tfevents.h"

namespace assay::metrics {

struct MetricsWriterConfig {
  int64_t first_step = 0;  // steps in the file already: the log was cut at this step
  bool has_tensorboard = true;
};

// Appends to <run_dir>/metrics.jsonl, one line and one write an entry. Invariant: steps rise
// strictly. Main thread only. Throws FileError; InternalError for a step that is there already and
// for a file that ends in a torn line (cut it with split_log_at_step first).
class MetricsWriter {
 public:
  MetricsWriter(const std::string& run_dir, const MetricsWriterConfig& config);
  void append(const StepRecord& record);
  void append(const EvalRecord& record);
  // Everything appended so far is on the disk when this returns.
  void sync();

 private:
  std::unique_ptr<AppendFile> file_;
  std::unique_ptr<TensorboardWriter> tensorboard_;  // null: off
  int64_t last_step_;
};

}  // namespace assay::metrics
