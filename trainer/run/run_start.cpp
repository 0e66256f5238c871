#include "trainer/run/run_start.h"

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "trainer/config/config_io.h"
#include "trainer/run/global_batch.h"
#include "trainer/run/run_folder.h"

namespace assay::run {
namespace {

bool is_given(const std::vector<std::string>& given, std::string_view key) {
  return std::find(given.begin(), given.end(), key) != given.end();
}

bool is_same_path(const std::string& left, const std::string& right) {
  std::error_code left_error;
  std::error_code right_error;
  const auto a = std::filesystem::weakly_canonical(left, left_error);
  const auto b = std::filesystem::weakly_canonical(right, right_error);
  return !left_error && !right_error && a == b;
}

bool lies_below(const std::string& path, const std::string& folder) {
  std::error_code error;
  const auto relative =
      std::filesystem::proximate(std::filesystem::weakly_canonical(path, error),
                                 std::filesystem::weakly_canonical(folder, error), error);
  return !error && !relative.empty() && *relative.begin() != "..";
}

std::string differences_text(const std::vector<config::FieldDifference>& differences) {
  std::vector<std::string> lines;
  for (const config::FieldDifference& difference : differences) {
    lines.push_back(
        cat(difference.key, ": ", difference.before, " there, ", difference.after, " now"));
  }
  return join(lines, "; ");
}

std::vector<config::FieldDifference> binding_differences(const config::RunConfig& stored,
                                                         const config::RunConfig& wanted) {
  auto differences = config::config_differences(stored, wanted);
  std::erase_if(differences, [](const config::FieldDifference& difference) {
    return difference.role == config::FieldRole::kFree;
  });
  return differences;
}

// The configuration in a folder that a fresh run was pointed at: ours, or the folder is not.
config::RunConfig own_config(const std::string& run_dir) {
  try {
    return read_config(run_dir);
  } catch (const CheckpointError& error) {
    throw ConfigError(cat("--output_dir ", quoted(run_dir),
                          " holds a config.json that is not one of a run: ", error.what(),
                          ". Fix: choose another folder"));
  }
}

// Fresh command on a folder that holds a run already.
RunStart meet_existing_run(const config::RunConfig& wanted) {
  const std::string& run_dir = wanted.output_dir;
  RunStart start;
  start.config = wanted;
  if (wanted.overwrite_output_dir) {
    if (path_exists(join_path(run_dir, kConfigFile))) own_config(run_dir);
    start.notes.push_back(cat("overwriting the run in ", run_dir));
    return start;
  }
  if (!path_exists(join_path(run_dir, kConfigFile))) {
    throw ConfigError(
        cat("--output_dir ", quoted(run_dir),
            " holds checkpoints or logs of a run but no config.json. Fix: choose another folder, "
            "or --overwrite_output_dir to replace that run"));
  }
  std::string holder;
  if (FolderLock::is_held(join_path(run_dir, checkpoints::kLockFile), &holder)) {
    throw CheckpointError(cat("the run folder ", quoted(run_dir), " is in use by ", holder,
                              ". Fix: wait for that run to end, or choose another --output_dir"));
  }
  const config::RunConfig stored = own_config(run_dir);
  const auto differences = binding_differences(stored, wanted);
  if (!differences.empty()) {
    throw ConfigError(
        cat("--output_dir ", quoted(run_dir), " holds a run of another configuration (",
            differences_text(differences),
            "). Fix: choose another folder, --resume_from_checkpoint auto to go on with "
            "that run, or --overwrite_output_dir to replace it"));
  }
  const auto result = read_result(run_dir);
  if (result && result->status == "completed") {
    start.kind = StartKind::kComplete;
    start.notes.push_back(
        cat("already complete: step ", result->final_step, " reached (", run_dir, ")"));
    return start;
  }
  throw ConfigError(cat(
      "--output_dir ", quoted(run_dir), " holds an incomplete run of this configuration",
      result ? cat(" (step ", result->final_step, ", ", result->stop_reason, ")") : "",
      ". Fix: --resume_from_checkpoint auto to go on, or --overwrite_output_dir to start anew"));
}

RunStart decide_fresh(const config::RunConfig& wanted) {
  if (holds_run(wanted.output_dir)) return meet_existing_run(wanted);
  RunStart start;
  start.config = wanted;
  return start;
}

std::string folder_for_request(const config::ParsedArguments& arguments) {
  const std::string& request = arguments.config.resume_from_checkpoint;
  if (request != "auto" && request != "latest") return "";
  if (arguments.config.output_dir.empty()) {
    throw ConfigError(cat("--resume_from_checkpoint ", request,
                          " needs the run's folder. Fix: add --output_dir DIR"));
  }
  return arguments.config.output_dir;
}

// Judged together: what must not change is the global batch.
bool is_batch_split(std::string_view key) {
  return key == "batch_size" || key == "gradient_accumulation_steps";
}

void refuse_changes(const config::RunConfig& stored, const config::RunConfig& wanted) {
  const std::vector<std::string> allowed = config::allowed_changes(wanted);
  auto differences = binding_differences(stored, wanted);
  std::erase_if(differences, [&](const config::FieldDifference& difference) {
    return difference.role != config::FieldRole::kIdentity ||
           difference.key == "schedule.total_steps" || is_batch_split(difference.key) ||
           is_given(allowed, difference.key);
  });
  if (differences.empty()) return;
  std::vector<std::string> keys;
  for (const auto& difference : differences) keys.push_back(difference.key);
  throw ConfigError(cat("a resume must not change ", differences_text(differences),
                        ". Fix: leave the option out, or --allow_config_change ", join(keys, ","),
                        " if another run is what you want"));
}

// The horizon is fixed at the first start; a new one is taken only where the old one has ended.
int64_t resumed_horizon(const config::RunConfig& wanted, bool is_horizon_given,
                        const checkpoints::TrainerState& trainer) {
  const int64_t stored = trainer.schedule_total_steps;
  if (stored == 0) return is_horizon_given ? wanted.schedule.total_steps.value_or(0) : 0;
  if (!is_horizon_given || !wanted.schedule.total_steps || *wanted.schedule.total_steps == stored) {
    return stored;
  }
  const bool is_at_end = trainer.updates >= stored;
  const std::vector<std::string> allowed = config::allowed_changes(wanted);
  if (is_at_end || is_given(allowed, "schedule.total_steps")) return *wanted.schedule.total_steps;
  throw ConfigError(cat("schedule.total_steps is ", stored, " in this run (update ",
                        trainer.updates, "), ", *wanted.schedule.total_steps,
                        " now. Fix: leave it out, or --allow_config_change schedule.total_steps"));
}

// `auto` where nothing was ever saved. What is not given still comes from the run that is there.
RunStart begin_anew(std::span<const std::string> words, const std::string& run_dir) {
  RunStart start;
  if (!holds_run(run_dir)) {
    start.config = config::parse_train_arguments(words).config;
    start.notes.push_back(cat("auto: no run in ", run_dir, "; starting at step 0"));
    return start;
  }
  const config::RunConfig stored = read_config(run_dir);
  start.config = config::parse_train_arguments(words, &stored).config;
  refuse_changes(stored, start.config);
  resumed_split({stored.batch_size, stored.gradient_accumulation_steps, 1},
                {start.config.batch_size, start.config.gradient_accumulation_steps, 1},
                {.has_batch_size = true, .has_accumulation = true});
  start.notes.push_back(
      cat("auto: the run in ", run_dir, " ended before its first save; starting at step 0"));
  return start;
}

// The folder of a checkpoint is its run's folder, unless it also holds checkpoints of another run.
void refuse_foreign_runs(const RunStart& start) {
  for (const auto& entry : checkpoints::list_checkpoints(start.source_run_dir)) {
    const std::string manifest = join_path(entry.path, checkpoints::kManifestFile);
    const std::string run_id =
        checkpoints::manifest_from_json(read_file(manifest), manifest).run_id;
    if (run_id == start.checkpoint->manifest.run_id) continue;
    throw ConfigError(cat(quoted(start.source_run_dir), " holds checkpoints of several runs (",
                          file_name(entry.path), " is of another than ",
                          file_name(start.checkpoint->path),
                          "). Fix: --output_dir with a folder for the resumed run"));
  }
}

void keep_global_batch(const config::RunConfig& stored, config::ParsedArguments& resumed,
                       int64_t world_size, RunStart& start) {
  config::RunConfig& config = resumed.config;
  const BatchSplit before{stored.batch_size, stored.gradient_accumulation_steps,
                          start.checkpoint->manifest.world_size};
  const BatchSplit wanted{config.batch_size, config.gradient_accumulation_steps, world_size};
  const std::vector<std::string> allowed = config::allowed_changes(config);
  const BatchSplit split = resumed_split(
      before, wanted,
      {.has_batch_size =
           is_given(resumed.given, "batch_size") && config.batch_size != stored.batch_size,
       .has_accumulation = is_given(resumed.given, "gradient_accumulation_steps") &&
                           config.gradient_accumulation_steps != stored.gradient_accumulation_steps,
       .may_change = std::any_of(allowed.begin(), allowed.end(), is_batch_split)});
  config.batch_size = split.batch_size;
  config.gradient_accumulation_steps = split.gradient_accumulation_steps;
  if (split == before) return;
  start.notes.push_back(cat("global batch: ", global_batch_text(before), " before, ",
                            global_batch_text(split), " now"));
}

RunStart decide_resume(std::span<const std::string> words, const config::ParsedArguments& first,
                       int64_t world_size) {
  const std::string run_dir = folder_for_request(first);
  const std::string& request = first.config.resume_from_checkpoint;
  if (request == "auto" && (!holds_run(run_dir) || has_never_saved(run_dir))) {
    return begin_anew(words, run_dir);
  }
  RunStart start;
  start.kind = StartKind::kResume;
  const checkpoints::ResumeChoice choice = checkpoints::choose_resume(request, run_dir);
  for (const std::string& skipped : choice.skipped) start.notes.push_back(cat("skipped ", skipped));
  if (!choice.path) {
    throw CheckpointError(
        cat("--resume_from_checkpoint ", request, ": no valid checkpoint in ", quoted(run_dir),
            ", which holds a run. Fix: restore a checkpoint, or start in another folder"));
  }
  start.checkpoint = checkpoints::open_checkpoint(*choice.path);
  start.source_run_dir = parent_path(start.checkpoint->path);
  const config::RunConfig stored =
      config::config_from_json(start.checkpoint->trainer.config_json,
                               join_path(start.checkpoint->path, checkpoints::kTrainerStateFile));
  config::ParsedArguments resumed = config::parse_train_arguments(words, &stored);
  refuse_changes(stored, resumed.config);
  keep_global_batch(stored, resumed, world_size, start);
  if (is_given(resumed.given, "num_train_epochs") && !is_given(resumed.given, "max_steps") &&
      resumed.config.max_steps) {
    throw ConfigError(cat("num_train_epochs is given, but this run's target is max_steps ",
                          *resumed.config.max_steps, ". Fix: --max_steps N"));
  }
  start.schedule_total_steps = resumed_horizon(
      resumed.config, is_given(resumed.given, "schedule.total_steps"), start.checkpoint->trainer);
  if (start.schedule_total_steps > 0)
    resumed.config.schedule.total_steps = start.schedule_total_steps;
  start.is_same_folder = !is_given(resumed.given, "output_dir") ||
                         is_same_path(resumed.config.output_dir, start.source_run_dir);
  if (start.is_same_folder) resumed.config.output_dir = start.source_run_dir;
  start.config = resumed.config;
  if (start.is_same_folder) refuse_foreign_runs(start);
  const std::string& target = start.config.output_dir;
  if (!start.is_same_folder && start.config.overwrite_output_dir &&
      lies_below(start.checkpoint->path, target)) {
    throw ConfigError(cat("--overwrite_output_dir would remove ", start.checkpoint->path,
                          ", which this run resumes from. Fix: choose another --output_dir"));
  }
  if (!start.is_same_folder && holds_run(target) && !start.config.overwrite_output_dir) {
    throw ConfigError(
        cat("--output_dir ", quoted(start.config.output_dir),
            " holds another run. Fix: choose an empty folder for the resumed run, or resume "
            "with --resume_from_checkpoint auto --output_dir ",
            start.config.output_dir));
  }
  start.notes.push_back(cat("resuming from ", start.checkpoint->path, " (step ",
                            start.checkpoint->trainer.step, ")"));
  return start;
}

}  // namespace

RunStart decide_start(std::span<const std::string> words, bool is_restart, int64_t world_size) {
  config::ParsedArguments first = config::peek_train_arguments(words);
  if (is_restart && !is_given(first.given, "resume_from_checkpoint")) {
    if (first.config.output_dir.empty()) {
      throw ConfigError(
          "an elastic agent restarted this run (TORCHELASTIC_RESTART_COUNT > 0), but without "
          "--output_dir each start has a folder of its own. Fix: add --output_dir DIR");
    }
    first.config.resume_from_checkpoint = "auto";
  }
  if (!first.config.resume_from_checkpoint.empty()) return decide_resume(words, first, world_size);
  config::RunConfig wanted = config::parse_train_arguments(words).config;
  const bool is_default_folder = wanted.output_dir.empty();
  if (is_default_folder) wanted.output_dir = cat("runs/", utc_compact(), "-", wanted.model.name);
  RunStart start = is_default_folder ? RunStart{} : decide_fresh(wanted);
  start.config = wanted;
  start.is_default_folder = is_default_folder;
  return start;
}

}  // namespace assay::run
