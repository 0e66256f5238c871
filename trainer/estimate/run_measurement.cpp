#include "trainer/estimate/run_measurement.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "trainer/config/config_io.h"
#include "trainer/metrics/step_record.h"

namespace assay::estimate {
namespace {

constexpr size_t kFewestSteps = 10;
// The first steps choose algorithms and fill caches.
constexpr double kWarmupFraction = 0.2;
// Makes the median absolute deviation of normal values their standard deviation.
constexpr double kDeviationFactor = 1.4826;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

template <class Get>
double median_of(const std::vector<metrics::StepRecord>& steps, const Get& get) {
  std::vector<double> values;
  for (const metrics::StepRecord& step : steps) values.push_back(get(step));
  return median(std::move(values));
}

std::string read_run_file(const std::string& run_dir, std::string_view name) {
  const std::string path = join_path(run_dir, name);
  try {
    return read_file(path);
  } catch (const FileError& error) {
    throw CheckpointError(
        cat("--from-run: ", error.what(), ". Fix: name a run folder that `assay train` wrote"));
  }
}

MeasuredStep measure(const metrics::MetricsFile& file, const config::RunConfig& config,
                     const std::string& run_dir) {
  if (file.steps.size() < kFewestSteps) {
    throw ConfigError(cat("--from-run ", quoted(run_dir), " has ", file.steps.size(),
                          " steps in metrics.jsonl, at least ", kFewestSteps,
                          " are needed for a median. Fix: name a longer run"));
  }
  const auto warmup = static_cast<std::ptrdiff_t>(
      std::ceil(kWarmupFraction * static_cast<double>(file.steps.size())));
  const std::vector<metrics::StepRecord> steps(file.steps.begin() + warmup, file.steps.end());
  const auto accumulation = static_cast<double>(config.gradient_accumulation_steps);
  MeasuredStep measured;
  measured.steps = static_cast<int64_t>(steps.size());
  measured.forward_ms = median_of(steps, [&](const metrics::StepRecord& step) {
    const metrics::PhaseTimes& phases = step.phases;
    return (phases.data_wait_ms + phases.h2d_ms + phases.forward_ms) / accumulation;
  });
  measured.backward_ms = median_of(steps, [&](const metrics::StepRecord& step) {
    return step.phases.backward_ms / accumulation;
  });
  measured.update_ms = median_of(steps, [](const metrics::StepRecord& step) {
    return step.phases.optimizer_ms + step.phases.other_ms;
  });
  const auto alone_ms = [](const metrics::StepRecord& step) {
    return step.time_ms - step.phases.comm_ms - step.phases.checkpoint_ms;
  };
  const double middle = median_of(steps, alone_ms);
  measured.deviation_ms = kDeviationFactor * median_of(steps, [&](const metrics::StepRecord& step) {
                            return std::abs(alone_ms(step) - middle);
                          });
  for (const metrics::StepRecord& step : steps) {
    measured.peak_allocated_bytes =
        std::max(measured.peak_allocated_bytes, step.memory.peak_allocated_bytes);
  }
  return measured;
}

}  // namespace

MeasuredRun read_measured_run(const std::string& run_dir) {
  MeasuredRun run;
  run.config = config::config_from_json(read_run_file(run_dir, "config.json"),
                                        join_path(run_dir, "config.json"));
  run.step =
      measure(metrics::read_metrics(join_path(run_dir, "metrics.jsonl")), run.config, run_dir);
  return run;
}

}  // namespace assay::estimate
