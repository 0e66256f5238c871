#include "trainer/metrics/metrics_writer.h"

#include <array>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/text.h"

namespace assay::metrics {
namespace {

void refuse_torn_tail(const std::string& path) {
  if (!path_exists(path)) return;
  const MappedFile file(path);
  if (file.size() == 0 || file.data()[file.size() - 1] == '\n') return;
  throw InternalError(cat(escaped(path),
                          " ends in a torn line; it must be cut at the checkpoint's step "
                          "before the run goes on"));
}

}  // namespace

MetricsWriter::MetricsWriter(const std::string& run_dir, const MetricsWriterConfig& config)
    : last_step_(config.first_step) {
  const std::string path = join_path(run_dir, "metrics.jsonl");
  refuse_torn_tail(path);
  file_ = std::make_unique<AppendFile>(path, "metrics");
  if (config.has_tensorboard) {
    tensorboard_ = std::make_unique<TensorboardWriter>(run_dir, config.first_step);
  }
}

void MetricsWriter::append(const StepRecord& record) {
  if (record.step <= last_step_) {
    throw InternalError(
        cat("step ", record.step, " cannot be appended to metrics.jsonl after step ", last_step_));
  }
  last_step_ = record.step;
  const std::string line = to_json_line(record) + "\n";
  file_->append(line);
  if (is_fault_due("defect.duplicate_log_line")) file_->append(line);
  if (tensorboard_ == nullptr) return;
  const std::array<Scalar, 5> scalars = {{{"train/loss", record.loss},
                                          {"train/learning_rate", record.learning_rate},
                                          {"train/grad_norm", record.grad_norm},
                                          {"train/epoch", record.epoch},
                                          {"train/step_time_ms", record.time_ms}}};
  tensorboard_->append(record.step, scalars);
}

void MetricsWriter::append(const EvalRecord& record) {
  file_->append(to_json_line(record) + "\n");
  if (tensorboard_ == nullptr) return;
  const std::array<Scalar, 2> scalars = {
      {{"eval/loss", record.loss}, {"eval/accuracy", record.accuracy}}};
  tensorboard_->append(record.step, scalars);
}

void MetricsWriter::sync() {
  file_->sync();
  if (tensorboard_ != nullptr) tensorboard_->sync();
}

}  // namespace assay::metrics
