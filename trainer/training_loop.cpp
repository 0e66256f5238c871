#include "trainer/training_loop.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>

#include <torch/torch.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fault_points.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "checkpoints/writer.h"
#include "trainer/config/config_io.h"
#include "trainer/distributed/replicas.h"
#include "trainer/metrics/ids_ledger.h"
#include "trainer/metrics/metrics_writer.h"
#include "trainer/metrics/progress.h"
#include "trainer/rank_summary.h"
#include "trainer/run/stop_signal.h"
#include "trainer/step/evaluate.h"
#include "trainer/step/step_clock.h"
#include "trainer/step/train_step.h"

namespace assay::trainer {
namespace {

// The others wait this long for rank 0's disk.
constexpr double kSaveSeconds = 3600;

int64_t host_rss_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total_pages = 0;
  int64_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

// Rotation never takes the checkpoint of the best evaluation.
std::vector<std::string> protected_checkpoints(const std::string& run_dir,
                                               const step::TrainState& state) {
  if (!state.best) return {};
  return {join_path(run_dir, checkpoints::checkpoint_name(state.best->step))};
}

// Tells the launcher not to cut this process short.
class WritingMark {
 public:
  explicit WritingMark(launch::ProgressPage& page) : page_(page) { page_.set_writing(true); }
  ~WritingMark() { page_.set_writing(false); }
  WritingMark(const WritingMark&) = delete;
  WritingMark& operator=(const WritingMark&) = delete;

 private:
  launch::ProgressPage& page_;
};

// Saves `state` now and returns its digest on rank 0. Collective: the others wait for the disk.
std::string save_checkpoint(const LoopContext& context, const step::TrainState& state) {
  distributed::World& world = context.ranks.world;
  const step::HostState host = step::capture(state, context.config, context.device, world);
  checkpoints::CommitResult saved;
  world.agree(
      "save", distributed::World::Who::kRootOnly,
      [&] {
        const WritingMark mark(context.ranks.page);
        saved = checkpoints::commit_checkpoint({
            .run_dir = context.config.output_dir,
            .parts = host.parts,
            .world_size = world.size(),
            .config_digest = config::identity_digest(context.config),
            .data_digest = context.data.digest,
            .versions = context.versions,
            .save_total_limit = context.config.checkpoint.save_total_limit,
            .keep_paths = protected_checkpoints(context.config.output_dir, state),
        });
      },
      kSaveSeconds);
  if (!world.is_root()) return "";
  context.log.info(cat("saved ", saved.path, " (", bytes_text(saved.bytes), ", ",
                       duration_text(saved.seconds), ")"));
  for (const std::string& path : saved.deleted) context.log.info(cat("removed old ", path));
  return saved.state_digest;
}

class TrainingLoop {
 public:
  TrainingLoop(const LoopContext& context, step::TrainState& state)
      : context_(context),
        config_(context.config),
        world_(context.ranks.world),
        page_(context.ranks.page),
        state_(state),
        train_step_(context.config, context.data.train->spec(), context.sampler, context.device,
                    context.ranks),
        clock_(context.device),
        progress_({.first_step = state.counters.step,
                   .target_step = context.target_steps,
                   .logging_steps = context.config.logging_steps,
                   .unit = is_token_data() ? "tokens" : "samples"},
                  context.log) {
    if (world_.is_root()) {
      metrics_.emplace(config_.output_dir,
                       metrics::MetricsWriterConfig{.first_step = state.counters.step,
                                                    .has_tensorboard = config_.tensorboard});
    }
    if (config_.log_sample_ids) ledger_.emplace(config_.output_dir, world_.rank());
  }

  LoopResult run() {
    page_.finish_step(state_.counters.step);
    check_replicas("at the start");
    context_.loader.start(state_.position);
    while (state_.counters.step < context_.target_steps) {
      world_.begin_step();
      const int own_signal = run::requested_stop_signal();
      step::PendingStep current = train_step_.run(state_, context_.loader, clock_, own_signal);
      if (pending_) finish_pending();  // one step late on CUDA: never waits for the newest step
      pending_.emplace(std::move(current));
      if (!context_.device.is_cuda() || stop_signal() != 0 || is_due_now()) finish_pending();
      fault_point("train.step_end");
      plant_flipped_weight();
      if (is_replica_check_due()) check_replicas(cat("after step ", state_.counters.step));
      if (is_eval_due()) evaluate_now();
      const int signal = stop_signal();
      if (is_save_due() || signal != 0) save_now();
      if (signal != 0 && state_.counters.step < context_.target_steps) {
        result_.stop_signal = signal;
        break;
      }
    }
    progress_.finish();
    return result_;
  }

 private:
  bool is_token_data() const {
    return context_.data.train->spec().feature_type == data::FeatureType::kInt64;
  }
  // What all ranks go by: one rank alone obeys at once, several when each has heard of it.
  int stop_signal() const {
    return world_.size() == 1 ? run::requested_stop_signal() : agreed_signal_;
  }
  bool is_last_step() const { return state_.counters.step >= context_.target_steps; }
  bool is_save_due() const {
    const int64_t interval = config_.checkpoint.save_steps;
    return is_last_step() || (interval > 0 && state_.counters.step % interval == 0);
  }
  bool is_eval_due() const {
    if (context_.data.eval->size() == 0) return false;
    return is_last_step() ||
           (config_.eval_steps > 0 && state_.counters.step % config_.eval_steps == 0);
  }
  bool is_replica_check_due() const {
    const int64_t interval = config_.ddp.check_replicas_steps;
    return world_.size() > 1 && interval > 0 && state_.counters.step % interval == 0;
  }
  bool is_due_now() const { return is_save_due() || is_eval_due() || is_replica_check_due(); }

  void finish_pending() {
    step::ResolvedStep resolved = train_step_.resolve(state_, *pending_);
    metrics::StepRecord& record = resolved.record;
    record.memory.host_rss_bytes = host_rss_bytes();
    if (result_.startup_seconds == 0) result_.startup_seconds = process_age_seconds();
    if (ledger_) ledger_->append(record.step, pending_->epoch, pending_->ids);
    pending_.reset();
    epochs_done_ = record.epoch;
    if (metrics_) metrics_->append(record);
    if (world_.is_root()) progress_.step_done(record);
    summary_.add(record);
    state_.last_loss = record.loss;
    page_.finish_step(record.step);
    if (resolved.stop_signal != 0) agreed_signal_ = resolved.stop_signal;
    if (resolved.is_nonfinite) stop_on_nonfinite(resolved);
  }

  [[noreturn]] void stop_on_nonfinite(const step::ResolvedStep& resolved) {
    if (metrics_) metrics_->sync();
    const metrics::StepRecord& record = resolved.record;
    const int64_t rank = std::max<int64_t>(resolved.nonfinite_rank, 0);
    throw DivergedError(
        cat("step ", record.step, " (rank ", rank, "): loss is ", record.loss, ", gradient norm ",
            record.grad_norm,
            resolved.nonfinite_gradient.empty()
                ? ""
                : cat(", first non-finite gradient in ", resolved.nonfinite_gradient),
            "; the update was not applied. Fix: resume from the newest checkpoint with a lower "
            "--learning_rate, --max_grad_norm 1, or without --bf16"));
  }

  void check_replicas(const std::string& when) {
    if (world_.size() == 1) return;
    std::vector<std::string> names;
    std::vector<at::Tensor> tensors;
    for (const step::NamedTensor& entry : step::replicated_tensors(state_, config_)) {
      names.push_back(entry.name);
      tensors.push_back(entry.tensor);
    }
    const auto differences = distributed::compare_replicas(world_, names, tensors);
    if (differences.empty()) return;
    throw DivergedError(cat("the ranks' states differ ", when, ": ",
                            distributed::differences_text(world_, differences),
                            ". Fix: check that host's memory and device, then resume from a "
                            "checkpoint before it"));
  }

  void plant_flipped_weight() {
    if (!is_fault_due("defect.flip_weight")) return;
    const torch::NoGradGuard no_grad;
    const at::Tensor& weight = state_.parameters.front().tensor;
    weight.reshape({-1})[0].mul_(-1);
  }

  void evaluate_now() {
    page_.set_phase(launch::RankPhase::kEvaluation);
    metrics::EvalRecord record =
        step::evaluate(state_, *context_.data.eval, config_, context_.device, world_);
    record.epoch = epochs_done_;
    if (metrics_) metrics_->append(record);
    if (std::isfinite(record.loss) && (!state_.best || record.loss < state_.best->loss)) {
      state_.best = checkpoints::BestEvaluation{record.step, record.loss};
    }
    context_.log.info(cat("step ", record.step, ": held-out loss ", record.loss, ", accuracy ",
                          record.accuracy, " over ", record.samples, " samples (best loss ",
                          state_.best ? state_.best->loss : record.loss, " at step ",
                          state_.best ? state_.best->step : record.step, ")"));
    clock_.restart();  // an evaluation has its own time_ms and belongs to no step
  }

  void save_now() {
    page_.set_phase(launch::RankPhase::kCheckpoint);
    const double start = monotonic_seconds();
    if (metrics_) metrics_->sync();
    if (ledger_) ledger_->sync();
    result_.state_digest = save_checkpoint(context_, state_);
    if (context_.ranks.reducer != nullptr) {
      summary_.write(world_, *context_.ranks.reducer, config_.output_dir, state_.counters.step);
    }
    page_.note_save(monotonic_seconds() - start);
    clock_.mark(step::Phase::kCheckpoint);
  }

  const LoopContext& context_;
  const config::RunConfig& config_;
  distributed::World& world_;
  launch::ProgressPage& page_;
  step::TrainState& state_;
  step::TrainStep train_step_;
  step::StepClock clock_;
  std::optional<metrics::MetricsWriter> metrics_;  // rank 0
  std::optional<metrics::IdsLedger> ledger_;
  metrics::Progress progress_;
  std::optional<step::PendingStep> pending_;
  RankSummary summary_;
  int agreed_signal_ = 0;
  double epochs_done_ = 0;
  LoopResult result_;
};

}  // namespace

LoopResult run_training(const LoopContext& context, step::TrainState& state) {
  return TrainingLoop(context, state).run();
}

}  // namespace assay::trainer
