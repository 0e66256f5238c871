#include "trainer/train_command.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include <torch/torch.h>
#include <torch/version.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "checkpoints/layout.h"
#include "platform/environment.h"
#include "trainer/config/config_io.h"
#include "trainer/run/environment_file.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/run_start.h"
#include "trainer/run/stop_signal.h"
#include "trainer/step/device.h"
#include "trainer/step/device_batch.h"
#include "trainer/training_loop.h"

namespace assay::trainer {
namespace {

std::map<std::string, std::string> versions() {
  return {{"assay", version_string()},          {"commit", git_commit()},
          {"libtorch", TORCH_VERSION},          {"cuda_build", build_cuda_version()},
          {"nccl_build", build_nccl_version()}, {"compiler", build_compiler()}};
}

data::OpenedData open_run_data(const config::RunConfig& config) {
  const models::ModelShape shape = models::model_shape(config.model);
  const bool is_tokens = shape.task == models::Task::kLanguageModel;
  data::DataRequest request;
  request.name = !config.data.name.empty() ? config.data.name : is_tokens ? "text" : "digits";
  request.directory = config.data.directory;
  request.sequence_length = config.data.sequence_length.value_or(shape.context_length);
  request.max_train_samples = config.data.max_train_samples.value_or(0);
  request.max_eval_samples = config.data.max_eval_samples.value_or(0);
  request.synthetic_samples = config.data.synthetic_samples.value_or(1024);
  request.image_shape = shape.image_shape;
  request.is_tokens = is_tokens;
  request.num_classes = shape.num_classes;
  data::OpenedData opened = data::open_data(request);
  const data::SampleSpec& spec = opened.train->spec();
  const bool has_tokens = spec.feature_type == data::FeatureType::kInt64;
  if (has_tokens != is_tokens || spec.num_classes > shape.num_classes ||
      (!is_tokens && spec.feature_shape != shape.image_shape)) {
    throw ConfigError(cat("data set ", quoted(opened.name), " does not fit model ",
                          quoted(config.model.name), ": it has ", spec.num_classes,
                          has_tokens ? " token ids" : " classes", ", the model ", shape.num_classes,
                          ". Fix: choose --dataset or --model to match"));
  }
  return opened;
}

int64_t target_steps(const config::RunConfig& config, const data::Sampler& sampler) {
  if (config.max_steps) return *config.max_steps;
  return static_cast<int64_t>(
      std::ceil(config.num_train_epochs * static_cast<double>(sampler.steps_per_epoch())));
}

int64_t worker_count(const config::RunConfig& config, const c10::Device& device) {
  if (config.data.num_workers) return *config.data.num_workers;
  return data::default_num_workers(platform::available_cpus(), device.is_cuda() ? 1 : 0, 1);
}

// One `train` session: everything it owns, built top to bottom.
class Session {
 public:
  Session(std::span<const std::string> words, const std::vector<std::string>& command,
          const launch::RankEnv& rank_env, Logger& log)
      : words_(words),
        command_(command),
        is_restart_(rank_env.restart_count > 0),
        local_rank_(rank_env.local_rank),
        log_(log) {}

  int run() {
    run::RunStart start = run::decide_start(words_, is_restart_);
    const std::string fingerprint = run::folder_fingerprint(start.config.output_dir);
    // fp64 is for proofs on the CPU; `auto` means that there.
    const bool is_cpu_only = start.config.precision == "fp64";
    const c10::Device device =
        step::choose_device(is_cpu_only ? "cpu" : start.config.device, local_rank_);
    const data::OpenedData data = open_run_data(start.config);
    const data::Sampler sampler(sampler_config(start.config, data));
    const int64_t target = target_steps(start.config, sampler);
    if (is_complete(start, target)) return report_complete(start, target);
    check_target(start, target);
    check_data(start, data);
    if (start.is_default_folder) claim_default_folder(start.config.output_dir);
    const std::string& run_dir = start.config.output_dir;
    run::prepare_folder(run_dir);
    const std::unique_ptr<FolderLock> lock = lock_folder(run_dir);
    check_unchanged(run_dir, fingerprint);
    log_.open_file(join_path(run_dir, "log-rank0.txt"));
    for (const std::string& note : start.notes) log_.info(note);
    try {
      return train(start, data, sampler, device, target);
    } catch (const FileError& error) {
      const CheckpointError named(
          cat("the run folder cannot be used: ", error.what(),
              ". Fix: make room or permissions, then --resume_from_checkpoint auto"));
      write_failure(run_dir, named);
      throw named;
    } catch (const std::exception& error) {
      write_failure(run_dir, error);
      throw;
    }
  }

 private:
  static data::SamplerConfig sampler_config(const config::RunConfig& config,
                                            const data::OpenedData& data) {
    return {.dataset_size = data.train->size(),
            .micro_batch_size = config.batch_size,
            .grad_accum_steps = config.gradient_accumulation_steps,
            .seed = config.seed,
            .shuffle = config.data.shuffle,
            .drop_last = config.data.drop_last};
  }

  // Two runs that start within one second get folders of their own.
  static void claim_default_folder(std::string& run_dir) {
    const std::string name = run_dir;
    create_directories(parent_path(name));
    for (int number = 2; !std::filesystem::create_directory(run_dir); ++number) {
      run_dir = cat(name, "-", number);
    }
  }

  static bool is_complete(const run::RunStart& start, int64_t target) {
    if (start.kind == run::StartKind::kComplete) return true;
    if (start.kind != run::StartKind::kResume || !start.is_same_folder) return false;
    if (start.checkpoint->trainer.step < target) return false;
    const auto result = run::read_result(start.source_run_dir);
    return result && result->status == "completed" &&
           result->final_step >= start.checkpoint->trainer.step;
  }

  int report_complete(const run::RunStart& start, int64_t target) {
    for (const std::string& note : start.notes) log_.info(note);
    const int64_t step = start.checkpoint ? start.checkpoint->trainer.step : target;
    log_.info(cat("already complete: step ", step, " of ", target, " reached, nothing to do (",
                  start.config.output_dir, ")"));
    return 0;
  }

  // Where the schedule of a resumed run ends; 0 for one that never falls.
  static int64_t horizon(const run::RunStart& start, int64_t target) {
    if (!step::is_decaying(start.config.schedule)) return 0;
    return start.schedule_total_steps > 0 ? start.schedule_total_steps : target;
  }

  static void check_target(const run::RunStart& start, int64_t target) {
    if (start.kind != run::StartKind::kResume) return;
    const checkpoints::TrainerState& trainer = start.checkpoint->trainer;
    if (trainer.step > target) {
      throw ConfigError(cat("max_steps is ", target, " but ", start.checkpoint->path,
                            " stands at step ", trainer.step,
                            ". Fix: a larger --max_steps, or resume from an earlier checkpoint"));
    }
    if (target > trainer.step && step::is_decaying(start.config.schedule) &&
        trainer.updates >= horizon(start, target)) {
      throw ConfigError(
          cat("the ", start.config.schedule.type, " schedule ended at its ", horizon(start, target),
              " steps and the learning rate stays at its end; ", target,
              " steps are asked for. Fix: give a new horizon, e.g. schedule.total_steps=", target));
    }
  }

  static void check_data(const run::RunStart& start, const data::OpenedData& data) {
    if (start.kind != run::StartKind::kResume) return;
    const std::string& stored = start.checkpoint->manifest.data_digest;
    if (stored == data.digest) return;
    for (const std::string& key : config::allowed_changes(start.config)) {
      if (key == "data.name" || key == "data.directory") return;
    }
    throw DataError(
        cat("the data differ from those of the run: digest ", data.digest, " here, ", stored,
            " in ", start.checkpoint->path,
            ". Fix: --data_dir with the same files, or --allow_config_change data_dir"));
  }

  static std::unique_ptr<FolderLock> lock_folder(const std::string& run_dir) {
    std::string holder;
    auto lock = FolderLock::try_lock(join_path(run_dir, checkpoints::kLockFile), &holder);
    if (!lock) {
      throw CheckpointError(cat("the run folder ", quoted(run_dir), " is in use by ", holder,
                                ". Fix: wait for that run to end, or choose another --output_dir"));
    }
    return lock;
  }

  // Between the decision and the lock another process may have used the folder.
  static void check_unchanged(const std::string& run_dir, const std::string& fingerprint) {
    if (run::folder_fingerprint(run_dir) == fingerprint) return;
    throw CheckpointError(cat("the run folder ", quoted(run_dir),
                              " changed while this run was starting. Fix: run the command again"));
  }

  // Brings the folder to the state that the run starts from.
  static void settle_folder(const run::RunStart& start, Logger& log) {
    const std::string& run_dir = start.config.output_dir;
    if (start.config.overwrite_output_dir &&
        !(start.kind == run::StartKind::kResume && start.is_same_folder)) {
      run::remove_run(run_dir);
    }
    checkpoints::remove_stale_temporaries(run_dir);
    run::remove_stale_files(run_dir);
    if (start.kind == run::StartKind::kResume && !start.is_same_folder) {
      run::continue_elsewhere(start.source_run_dir, *start.checkpoint, run_dir);
    } else {
      const bool is_resume = start.kind == run::StartKind::kResume;
      const std::string lost =
          is_resume ? run::check_kept_lines(run_dir, start.checkpoint->trainer.step) : "";
      if (!lost.empty()) log.warning(lost);
      const std::string aside =
          run::put_aside_later(run_dir, is_resume ? start.checkpoint->trainer.step : 0,
                               is_resume ? file_name(start.checkpoint->path) : "");
      if (!aside.empty()) log.info(cat("lines and checkpoints after that are now in ", aside));
    }
    remove_file(join_path(run_dir, run::kResultFile));
    write_file_durably(join_path(run_dir, run::kConfigFile),
                       config::config_file_text(lasting(start.config)), "config");
  }

  // The configuration without what concerns this one session.
  static config::RunConfig lasting(config::RunConfig config) {
    config.resume_from_checkpoint.clear();
    config.allow_config_change.clear();
    config.overwrite_output_dir = false;
    return config;
  }

  int train(const run::RunStart& start, const data::OpenedData& data, const data::Sampler& sampler,
            const c10::Device& device, int64_t target) {
    settle_folder(start, log_);
    const config::RunConfig config = lasting(start.config);
    step::apply_numeric_settings(config, device);
    const int64_t workers = worker_count(config, device);
    record_environment(config, data, device, workers);
    step::TrainState state = step::make_initial_state(config, device, target);
    state.run_id =
        sha256_hex(cat(utc_timestamp(), config.output_dir, process_age_seconds(), getpid()));
    std::unique_ptr<data::HostMemory> pinned;
    if (device.is_cuda() && config.data.pin_memory) pinned = std::make_unique<step::PinnedMemory>();
    data::DataLoader loader(
        *data.train, sampler,
        {.num_workers = workers, .prefetch_factor = config.data.prefetch_factor},
        pinned ? *pinned : data::ordinary_memory());
    const LoopContext context{config, data, sampler, loader, device, target, versions(), log_};
    std::string digest;
    if (start.kind == run::StartKind::kResume) {
      step::restore(state, *start.checkpoint, device);
      state.schedule.total_steps = horizon(start, target);
      digest = start.checkpoint->manifest.state_digest;
    }
    describe(config, data, state, device, target);
    LoopResult result;
    try {
      result = run_training(context, state);
    } catch (...) {
      failed_step_ = state.counters.step;
      failed_loss_ = state.last_loss;
      throw;
    }
    if (result.state_digest.empty()) result.state_digest = digest;
    return finish(config, state, result, target);
  }

  void record_environment(const config::RunConfig& config, const data::OpenedData& data,
                          const c10::Device& device, int64_t workers) const {
    run::write_environment({
        .run_dir = config.output_dir,
        .command = command_,
        .device = device.str(),
        .world_size = 1,
        .num_threads = at::get_num_threads(),
        .num_workers = workers,
        .versions = versions(),
        .data = {{"name", data.name},
                 {"digest", data.digest},
                 {"train_samples", cat(data.train->size())},
                 {"eval_samples", cat(data.eval->size())}},
    });
  }

  void describe(const config::RunConfig& config, const data::OpenedData& data,
                const step::TrainState& state, const c10::Device& device, int64_t target) const {
    log_.info(cat(config.model.name, " (", models::parameter_count(state.model), " parameters) on ",
                  data.name, " (", data.train->size(), " samples, ", data.eval->size(),
                  " held out), ", device.str(), ", ", config.precision,
                  config.deterministic ? ", deterministic" : "", ", global batch ",
                  config.batch_size * config.gradient_accumulation_steps, ", steps ",
                  state.counters.step, " to ", target, ", run folder ", config.output_dir));
  }

  int finish(const config::RunConfig& config, const step::TrainState& state, const LoopResult& loop,
             int64_t target) const {
    run::RunResult result;
    result.status = loop.stop_signal == 0 ? "completed" : "stopped";
    result.final_step = state.counters.step;
    result.final_loss = state.last_loss;
    result.state_digest = loop.state_digest;
    result.stop_reason = loop.stop_signal == 0 ? cat("step ", target, " reached")
                                               : run::signal_name(loop.stop_signal);
    result.exit_code = loop.stop_signal == 0 ? 0 : 128 + loop.stop_signal;
    result.wall_seconds = process_age_seconds();
    result.startup_seconds = loop.startup_seconds;
    write_file_durably(join_path(config.output_dir, run::kResultFile), run::to_json(result),
                       "result");
    log_.info(cat(result.status, " at step ", result.final_step, " of ", target, " (",
                  result.stop_reason, "), loss ", result.final_loss, ", state ",
                  result.state_digest.substr(0, 16)));
    return result.exit_code;
  }

  void write_failure(const std::string& run_dir, const std::exception& error) const {
    run::RunResult result;
    const ExitCode code = exit_code_of(error);
    result.status = code == ExitCode::kDiverged ? "diverged" : "failed";
    result.stop_reason = describe_exception(error);
    result.exit_code = static_cast<int>(code);
    result.wall_seconds = process_age_seconds();
    result.final_step = failed_step_;
    result.final_loss = failed_loss_;
    try {
      const auto entries = checkpoints::list_checkpoints(run_dir);
      if (!entries.empty()) {
        const std::string manifest = join_path(entries.back().path, checkpoints::kManifestFile);
        result.state_digest =
            checkpoints::manifest_from_json(read_file(manifest), manifest).state_digest;
      }
      write_file_durably(join_path(run_dir, run::kResultFile), run::to_json(result), "result");
    } catch (const FileError& second) {
      // A full or vanished disk: the first error is the one to report.
      std::fprintf(stderr, "assay: result.json could not be written either: %s\n", second.what());
    }
  }

  std::span<const std::string> words_;
  const std::vector<std::string>& command_;
  bool is_restart_;
  int64_t local_rank_;
  Logger& log_;
  int64_t failed_step_ = 0;  // for result.json, if training throws
  double failed_loss_ = NAN;
};

}  // namespace

int run_train_command(std::span<const std::string> words, const std::vector<std::string>& command,
                      const launch::RankEnv& rank_env, Logger& log) {
  if (rank_env.world_size > 1) {
    throw LaunchError(cat(rank_env.source, " started ", rank_env.world_size,
                          " ranks; training on several ranks is not in this release (",
                          version_string(), "). Fix: start one process"));
  }
  return Session(words, command, rank_env, log).run();
}

std::string trainer_version_text() {
  return cat(
      "assay-train ", version_string(), " (commit ", git_commit(), "), LibTorch ", TORCH_VERSION,
      build_cuda_version().empty() ? ", no CUDA" : cat(", CUDA ", build_cuda_version()), "\n");
}

}  // namespace assay::trainer
