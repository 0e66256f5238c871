#include "trainer/estimate/estimate_command.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/loader.h"
#include "platform/environment.h"
#include "trainer/config/config_io.h"
#include "trainer/estimate/estimate.h"
#include "trainer/estimate/estimate_options.h"
#include "trainer/estimate/run_measurement.h"
#include "trainer/estimate/scaling_plan.h"
#include "trainer/estimate/step_trace.h"
#include "trainer/step/sharded_optimizer.h"

namespace assay::estimate {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// LibTorch's default sizes (CUDABlas.cpp, parseChosenWorkspaceSize): Hopper and newer, older ones,
// and what deterministic runs ask for with CUBLAS_WORKSPACE_CONFIG=:4096:8.
constexpr int64_t kHopperWorkspaceBytes = 32 * kMiB;
constexpr int64_t kOlderWorkspaceBytes = 8 * kMiB + 128 * 1024;
constexpr int64_t kServingElementBytes = 2;
constexpr std::string_view kUnmeasuredCard = "H100";

// A measured step is of one configuration; what changes it makes it another's.
void check_same_step(const config::RunConfig& measured, const config::RunConfig& wanted) {
  std::vector<std::string> changes;
  for (const config::FieldDifference& difference : config::config_differences(measured, wanted)) {
    if (difference.role != config::FieldRole::kIdentity) continue;
    changes.push_back(
        cat(difference.key, " (", difference.before, " in the run, ", difference.after, " here)"));
  }
  if (changes.empty()) return;
  throw ConfigError(
      cat("--from-run's steps were measured with another configuration: ", join(changes, ", "),
          ". Fix: leave these out, or leave --from-run out and give --step-ms"));
}

// Whole parameters have one owner each, so that a large one makes its owner's share large.
double largest_share(const StepTrace& trace, int64_t ranks) {
  std::vector<int64_t> sizes;
  for (const ReadyGradient& parameter : trace.registered) sizes.push_back(parameter.elements);
  const std::vector<int64_t> owners = step::assign_owners(sizes, ranks);
  std::map<int64_t, int64_t> loads;
  int64_t largest = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    largest = std::max(largest, loads[owners[i]] += sizes[i]);
  }
  return static_cast<double>(largest) / static_cast<double>(std::max<int64_t>(trace.parameters, 1));
}

// The nearest folder above a path that exists; for the room on its disk.
std::string existing_folder(const std::string& path) {
  std::string folder = path.empty() ? "." : path;
  while (!is_directory(folder)) folder = parent_path(folder).empty() ? "." : parent_path(folder);
  return folder;
}

class Estimator {
 public:
  explicit Estimator(const EstimateOptions& options) : options_(options) {
    if (!options.from_run.empty()) measured_.emplace(read_measured_run(options.from_run));
    config_ = parse_planned_run(options.train_words, measured_ ? &measured_->config : nullptr);
    if (measured_) check_same_step(measured_->config, config_);
    environment_ = platform::record_environment({existing_folder(config_.output_dir)});
    has_gpu_ = !environment_.gpus.empty() && config_.device != "cpu" && config_.precision != "fp64";
    is_gpu_ = has_gpu_ || (config_.device != "cpu" && config_.precision != "fp64");
  }

  Estimate run() {
    Estimate estimate;
    estimate.run = {.model = config_.model.name,
                    .precision = config_.precision,
                    .optimizer = config_.optimizer.name,
                    .batch_size = config_.batch_size,
                    .grad_accum_steps = config_.gradient_accumulation_steps,
                    .is_gpu = is_gpu_};
    estimate.trace = trace(config_, is_gpu_);
    estimate.work = work_of(estimate.trace, config_.gradient_accumulation_steps);
    if (is_gpu_) {
      estimate.bounds = card_bounds(estimate.trace, config_.gradient_accumulation_steps);
      estimate.fits = fits(estimate.trace);
    }
    add_here(estimate);
    estimate.kv_cache = kv_cache(
        estimate.trace,
        options_.context.value_or(estimate.trace.tokens / std::max<int64_t>(1, config_.batch_size)),
        options_.requests, kServingElementBytes);
    if (measured_) estimate.measured_peak_bytes = measured_->step.peak_allocated_bytes;
    if (!options_.worlds.empty()) {
      const StepTrace& trace = estimate.trace;
      estimate.scaling =
          plan_scaling(trace, config_, options_, card(), measured_ ? &*measured_ : nullptr,
                       [&](int64_t ranks) { return largest_share(trace, ranks); });
    }
    return estimate;
  }

 private:
  int64_t workspace_bytes() const {
    if (config_.deterministic || !has_gpu_) return kHopperWorkspaceBytes;
    return environment_.gpus[0].compute_major >= 9 ? kHopperWorkspaceBytes : kOlderWorkspaceBytes;
  }

  StepTrace trace(const config::RunConfig& config, bool is_gpu) const {
    ShapeDevice device({.is_gpu = is_gpu, .cublas_workspace_bytes = workspace_bytes()});
    return trace_step(device, config);
  }

  std::vector<CardFit> fits(const StepTrace& as_configured) const {
    Ladder ladder(config_, as_configured, /*is_gpu=*/true,
                  [this](const std::vector<std::string>& words) {
                    return trace(config::parse_train_arguments(words, &config_).config, true);
                  });
    std::vector<CardFit> fits;
    for (const MemoryClass& card : memory_classes()) {
      CardFit fit;
      fit.gb = card.gb;
      fit.rung = ladder.first_that_fits(card.mib * kMiB, &fit.missing);
      fits.push_back(std::move(fit));
    }
    return fits;
  }

  void add_here(Estimate& estimate) const {
    const platform::MemoryFacts& memory = environment_.memory;
    const uint64_t limit = memory.cgroup_limit_bytes > 0 ? memory.cgroup_limit_bytes : UINT64_MAX;
    estimate.host_available_bytes = static_cast<int64_t>(std::min(memory.available_bytes, limit));
    const int64_t workers = config_.data.num_workers.value_or(
        data::default_num_workers(platform::available_cpus(), has_gpu_ ? 1 : 0, 1));
    if (has_gpu_) {
      const platform::GpuFacts& gpu = environment_.gpus[0];
      estimate.here = {gpu.name, gpu.memory_bytes - gpu.used_bytes,
                       needed_bytes(estimate.trace, true)};
      estimate.host = host_memory(estimate.trace, config_, true, workers);
    } else {
      const StepTrace on_cpu = is_gpu_ ? trace(config_, false) : estimate.trace;
      estimate.host = host_memory(on_cpu, config_, false, workers);
      estimate.here = {"CPU", estimate.host_available_bytes, estimate.host.total_bytes()};
    }
    estimate.room_folder = existing_folder(config_.output_dir);
    estimate.room_free_bytes = static_cast<int64_t>(disk_space(estimate.room_folder).free_bytes);
    estimate.room = checkpoint_room(estimate.trace, config_, config_.max_steps.value_or(0));
  }

  Card card() const {
    if (!options_.card.empty()) {
      if (const std::optional<Card> named = find_card(options_.card)) return *named;
      std::vector<std::string> names;
      for (const Card& one : cards()) names.emplace_back(one.name);
      throw ConfigError(cat("--card is ", quoted(options_.card), ", must be one of ",
                            join(names, ", "), ". Fix: write one of these"));
    }
    if (has_gpu_) {
      if (const std::optional<Card> here = find_card(environment_.gpus[0].name)) return *here;
    }
    return *find_card(kUnmeasuredCard);
  }

  const EstimateOptions& options_;
  std::optional<MeasuredRun> measured_;
  config::RunConfig config_;
  platform::Environment environment_;
  bool has_gpu_ = false;  // the run would use a GPU that is here
  bool is_gpu_ = false;   // the run is planned for a GPU
};

}  // namespace

CommandOutput run_estimate_command(std::span<const std::string> words) {
  const EstimateOptions options = parse_estimate_options(words);
  if (options.is_help) return {estimate_help(), 0};
  const Estimate estimate = Estimator(options).run();
  return {options.is_json ? estimate_json(estimate) : estimate_text(estimate),
          static_cast<int>(estimate.here.fits() ? ExitCode::kOk : ExitCode::kCheckFailed)};
}

}  // namespace assay::estimate
