#include "trainer/run_folder_start.h"

#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "trainer/config/config_io.h"
#include "trainer/run/run_folder.h"
#include "trainer/step/lr_schedule.h"

namespace assay::trainer {
namespace {

// Two runs that start within one second get folders of their own.
void claim_default_folder(std::string& run_dir) {
  const std::string name = run_dir;
  create_directories(parent_path(name));
  for (int number = 2; !std::filesystem::create_directory(run_dir); ++number) {
    run_dir = cat(name, "-", number);
  }
}

bool is_complete(const run::RunStart& start, int64_t target) {
  if (start.kind == run::StartKind::kComplete) return true;
  if (start.kind != run::StartKind::kResume || !start.is_same_folder) return false;
  if (start.checkpoint->trainer.step < target) return false;
  const auto result = run::read_result(start.source_run_dir);
  return result && result->status == "completed" &&
         result->final_step >= start.checkpoint->trainer.step;
}

void check_target(const run::RunStart& start, int64_t target) {
  if (start.kind != run::StartKind::kResume) return;
  const checkpoints::TrainerState& trainer = start.checkpoint->trainer;
  if (trainer.step > target) {
    throw ConfigError(cat("max_steps is ", target, " but ", start.checkpoint->path,
                          " stands at step ", trainer.step,
                          ". Fix: a larger --max_steps, or resume from an earlier checkpoint"));
  }
  if (target > trainer.step && step::is_decaying(start.config.schedule) &&
      trainer.updates >= horizon(start.config, start.schedule_total_steps, target)) {
    throw ConfigError(
        cat("the ", start.config.schedule.type, " schedule ended at its ",
            horizon(start.config, start.schedule_total_steps, target),
            " steps and the learning rate stays at its end; ", target,
            " steps are asked for. Fix: give a new horizon, e.g. schedule.total_steps=", target));
  }
}

void check_data(const run::RunStart& start, const data::OpenedData& data) {
  if (start.kind != run::StartKind::kResume) return;
  const std::string& stored = start.checkpoint->manifest.data_digest;
  if (stored == data.digest) return;
  for (const std::string& key : config::allowed_changes(start.config)) {
    if (key == "data.name" || key == "data.directory") return;
  }
  throw DataError(cat("the data differ from those of the run: digest ", data.digest, " here, ",
                      stored, " in ", start.checkpoint->path,
                      ". Fix: --data_dir with the same files, or --allow_config_change data_dir"));
}

std::unique_ptr<FolderLock> lock_folder(const std::string& run_dir) {
  std::string holder;
  auto lock = FolderLock::try_lock(join_path(run_dir, checkpoints::kLockFile), &holder);
  if (!lock) {
    throw CheckpointError(cat("the run folder ", quoted(run_dir), " is in use by ", holder,
                              ". Fix: wait for that run to end, or choose another --output_dir"));
  }
  return lock;
}

// Between the decision and the lock another process may have used the folder.
void check_unchanged(const std::string& run_dir, const std::string& fingerprint) {
  if (run::folder_fingerprint(run_dir) == fingerprint) return;
  throw CheckpointError(cat("the run folder ", quoted(run_dir),
                            " changed while this run was starting. Fix: run the command again"));
}

// Brings the folder to the state that the run starts from.
void settle_folder(const run::RunStart& start, std::vector<std::string>& notes) {
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
    if (!lost.empty()) notes.push_back(lost);
    const std::string aside =
        run::put_aside_later(run_dir, is_resume ? start.checkpoint->trainer.step : 0,
                             is_resume ? file_name(start.checkpoint->path) : "");
    if (!aside.empty()) notes.push_back(cat("lines and checkpoints after that are now in ", aside));
  }
  remove_file(join_path(run_dir, run::kResultFile));
  write_file_durably(join_path(run_dir, run::kConfigFile),
                     config::config_file_text(lasting(start.config)), "config");
}

}  // namespace

config::RunConfig lasting(config::RunConfig config) {
  config.resume_from_checkpoint.clear();
  config.allow_config_change.clear();
  config.overwrite_output_dir = false;
  return config;
}

int64_t horizon(const config::RunConfig& config, int64_t stored_total_steps, int64_t target_steps) {
  if (!step::is_decaying(config.schedule)) return 0;
  return stored_total_steps > 0 ? stored_total_steps : target_steps;
}

TakenFolder take_folder(run::RunStart& start, const std::string& fingerprint,
                        const data::OpenedData& data, int64_t target, Logger& log) {
  TakenFolder taken;
  if (is_complete(start, target)) {
    for (const std::string& note : start.notes) log.info(note);
    const int64_t step = start.checkpoint ? start.checkpoint->trainer.step : target;
    log.info(cat("already complete: step ", step, " of ", target, " reached, nothing to do (",
                 start.config.output_dir, ")"));
    return taken;
  }
  check_target(start, target);
  check_data(start, data);
  if (start.is_default_folder) claim_default_folder(start.config.output_dir);
  const std::string& run_dir = start.config.output_dir;
  run::prepare_folder(run_dir);
  taken.lock = lock_folder(run_dir);
  check_unchanged(run_dir,
                  start.is_default_folder ? run::folder_fingerprint(run_dir) : fingerprint);
  settle_folder(start, taken.notes);
  taken.run_dir = std::filesystem::absolute(run_dir).lexically_normal().string();
  return taken;
}

}  // namespace assay::trainer
