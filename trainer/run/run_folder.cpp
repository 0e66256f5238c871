#include "trainer/run/run_folder.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "trainer/config/config_io.h"
#include "trainer/metrics/step_record.h"

namespace assay::run {
namespace {

bool is_id_ledger(std::string_view name) {
  return name.starts_with("ids-rank") && name.ends_with(".jsonl");
}

bool is_run_file(std::string_view name) {
  return name == kConfigFile || name == kEnvironmentFile || name == kMetricsFile ||
         name == kResultFile || name == kRanksFile || name == checkpoints::kLatestFile || is_id_ledger(name) ||
         (name.starts_with("log-rank") && name.ends_with(".txt")) ||
         name.starts_with("events.out.tfevents.");
}

bool is_abandoned_name(std::string_view name) {
  constexpr std::string_view kPrefix = "abandoned-";
  return name.starts_with(kPrefix) && parse_uint64(name.substr(kPrefix.size())).has_value();
}

std::string next_abandoned_name(const std::string& run_dir) {
  for (int64_t n = 1;; ++n) {
    std::string name = cat("abandoned-", n);
    if (!path_exists(join_path(run_dir, name))) return name;
  }
}

struct LogCut {
  std::string name;
  metrics::SplitLog parts;
};

std::vector<LogCut> cut_logs(const std::string& run_dir, int64_t step) {
  std::vector<LogCut> cuts;
  for (const std::string& name : list_directory(run_dir)) {
    if (name != kMetricsFile && !is_id_ledger(name)) continue;
    cuts.push_back({name, metrics::split_log_at_step(read_file(join_path(run_dir, name)), step)});
  }
  return cuts;
}

bool holds_only_our_files(const std::string& checkpoint) {
  const std::vector<std::string> names = list_directory(checkpoint);
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return checkpoints::is_checkpoint_file_name(name);
  });
}

// Removes the files of this format; the folder goes too if nothing else is in it.
void remove_checkpoint(const std::string& checkpoint) {
  const bool is_whole = holds_only_our_files(checkpoint);
  for (const std::string& name : list_directory(checkpoint)) {
    const std::string path = join_path(checkpoint, name);
    if (checkpoints::is_checkpoint_file_name(name) && is_regular_file(path)) remove_file(path);
  }
  if (is_whole) remove_tree(checkpoint);
}

// Newer than `step`, or not readable at all (then its name decides nothing: it is damaged).
std::vector<std::string> later_checkpoints(const std::string& run_dir, int64_t step,
                                           const std::string& keep_name) {
  const auto committed = checkpoints::list_checkpoints(run_dir);
  std::vector<std::string> later;
  for (const std::string& name : checkpoint_folders(run_dir)) {
    if (name == keep_name) continue;
    const auto entry = std::find_if(committed.begin(), committed.end(), [&](const auto& candidate) {
      return file_name(candidate.path) == name;
    });
    // A folder that is no checkpoint of this format is not ours to move.
    const bool is_damaged =
        entry == committed.end() && holds_only_our_files(join_path(run_dir, name));
    if (is_damaged || (entry != committed.end() && entry->step > step)) later.push_back(name);
  }
  // Newest first, so that a kill in between leaves the newest remaining one as the latest.
  std::sort(later.begin(), later.end(), [](const std::string& a, const std::string& b) {
    return checkpoints::step_of_name(a).value_or(0) > checkpoints::step_of_name(b).value_or(0);
  });
  return later;
}

}  // namespace

std::string to_json(const RunResult& result) {
  nlohmann::ordered_json json;
  json["status"] = result.status;
  json["final_step"] = result.final_step;
  if (std::isfinite(result.final_loss)) {
    json["final_loss"] = result.final_loss;
  } else {
    json["final_loss"] = nullptr;
  }
  json["final_loss_hex"] = hex_float(result.final_loss);
  json["state_digest"] = result.state_digest;
  json["stop_reason"] = result.stop_reason;
  json["exit_code"] = result.exit_code;
  json["wall_seconds"] = result.wall_seconds;
  json["startup_seconds"] = result.startup_seconds;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::optional<RunResult> read_result(const std::string& run_dir) {
  const std::string path = join_path(run_dir, kResultFile);
  if (!path_exists(path)) return std::nullopt;
  try {
    const nlohmann::json json = parse_json(read_file(path), path);
    RunResult result;
    result.status = json.at("status").get<std::string>();
    result.final_step = json.at("final_step").get<int64_t>();
    result.final_loss = parse_hex_float(json.at("final_loss_hex").get<std::string>()).value_or(NAN);
    result.state_digest = json.at("state_digest").get<std::string>();
    result.stop_reason = json.at("stop_reason").get<std::string>();
    result.exit_code = json.at("exit_code").get<int>();
    result.wall_seconds = json.at("wall_seconds").get<double>();
    result.startup_seconds = json.at("startup_seconds").get<double>();
    return result;
  } catch (const std::exception& error) {
    throw CheckpointError(cat(path, " does not read: ", error.what(),
                              ". Fix: remove this one file; a resume writes it anew"));
  }
}

std::vector<std::string> checkpoint_folders(const std::string& run_dir) {
  std::vector<std::string> folders;
  for (const std::string& name : list_directory(run_dir)) {
    const std::string path = join_path(run_dir, name);
    if (checkpoints::is_temporary_name(name) || !is_directory(path)) continue;
    const bool has_manifest = path_exists(join_path(path, checkpoints::kManifestFile));
    if (checkpoints::step_of_name(name).has_value() || has_manifest) folders.push_back(name);
  }
  return folders;
}

bool holds_run(const std::string& run_dir) {
  if (!is_directory(run_dir)) return false;
  return path_exists(join_path(run_dir, kConfigFile)) ||
         path_exists(join_path(run_dir, kMetricsFile)) ||
         path_exists(join_path(run_dir, checkpoints::kLatestFile)) ||
         !checkpoint_folders(run_dir).empty();
}

config::RunConfig read_config(const std::string& run_dir) {
  const std::string path = join_path(run_dir, kConfigFile);
  if (!path_exists(path)) {
    throw CheckpointError(
        cat(run_dir, " holds parts of a run but no ", kConfigFile,
            ". Fix: use another --output_dir, or --resume_from_checkpoint with a checkpoint"));
  }
  try {
    return config::config_from_json(read_file(path), path);
  } catch (const Error& error) {
    throw CheckpointError(cat("the run's own configuration does not read: ", error.what()));
  } catch (const FileError& error) {
    throw CheckpointError(cat("the run's own configuration does not read: ", error.what()));
  }
}

bool has_never_saved(const std::string& run_dir) {
  const auto result = read_result(run_dir);
  if (result && (!result->state_digest.empty() || result->status == "completed")) return false;
  if (path_exists(join_path(run_dir, checkpoints::kLatestFile))) return false;
  if (!checkpoint_folders(run_dir).empty()) return false;
  const std::string metrics = join_path(run_dir, kMetricsFile);
  if (!path_exists(metrics)) return true;
  const int64_t save_steps = read_config(run_dir).checkpoint.save_steps;
  if (save_steps == 0) return true;
  return metrics::split_log_at_step(read_file(metrics), save_steps).later.find('\n') ==
         std::string::npos;
}

void prepare_folder(const std::string& run_dir) {
  const std::string probe = join_path(run_dir, ".write-probe");
  try {
    create_directories(run_dir);
    if (path_exists(probe)) remove_file(probe);
    FileWriter writer(probe, "config");
    writer.write("assay\n");
    writer.sync();
    writer.close();
    remove_file(probe);
  } catch (const FileError& error) {
    if (is_regular_file(probe)) remove_file(probe);
    throw CheckpointError(cat("the run folder cannot be written: ", error.what(),
                              ". Fix: choose another --output_dir, or make room or permissions"));
  }
}

void remove_run(const std::string& run_dir) {
  if (!is_directory(run_dir)) return;
  for (const std::string& name : checkpoint_folders(run_dir)) {
    // Only what a run of ours committed; a folder without a manifest is somebody else's.
    const std::string path = join_path(run_dir, name);
    if (path_exists(join_path(path, checkpoints::kManifestFile))) remove_checkpoint(path);
  }
  for (const std::string& name : list_directory(run_dir)) {
    const std::string path = join_path(run_dir, name);
    if (is_run_file(name) && is_regular_file(path)) remove_file(path);
    if (!is_abandoned_name(name) || !is_directory(path)) continue;
    remove_run(path);
    if (list_directory(path).empty()) remove_tree(path);
  }
}

std::string put_aside_later(const std::string& run_dir, int64_t step,
                            const std::string& keep_name) {
  const std::vector<std::string> later = later_checkpoints(run_dir, step, keep_name);
  const std::vector<LogCut> cuts = cut_logs(run_dir, step);
  const bool has_later_lines = std::any_of(
      cuts.begin(), cuts.end(), [](const LogCut& cut) { return !cut.parts.later.empty(); });
  if (later.empty() && !has_later_lines) return "";
  const std::string name = next_abandoned_name(run_dir);
  const std::string aside = join_path(run_dir, name);
  create_directories(aside);
  for (const LogCut& cut : cuts) {
    if (!cut.parts.later.empty()) {
      write_file_durably(join_path(aside, cut.name), cut.parts.later, "config");
    }
  }
  const std::string latest = join_path(run_dir, checkpoints::kLatestFile);
  if (keep_name.empty()) {
    remove_file(latest);
  } else {
    write_file_durably(latest, keep_name + "\n", "checkpoint.latest");
  }
  for (const std::string& checkpoint : later) {
    rename_path(join_path(run_dir, checkpoint), join_path(aside, checkpoint), "checkpoint.rotate");
  }
  // The logs are cut last: until then every remaining checkpoint still has all its lines.
  for (const LogCut& cut : cuts) {
    if (!cut.parts.later.empty()) {
      write_file_durably(join_path(run_dir, cut.name), cut.parts.kept, "config");
    }
  }
  sync_directory(run_dir, "checkpoint.sync_parent");
  return name;
}

std::string check_kept_lines(const std::string& run_dir, int64_t step) {
  const std::string path = join_path(run_dir, kMetricsFile);
  if (!path_exists(path)) {
    return step == 0 ? "" : cat(path, " is missing: the lines of steps 1 to ", step, " are lost");
  }
  int64_t expected = 1;
  int64_t number = 0;
  for (const std::string& line : split(read_file(path), '\n')) {
    ++number;
    if (line.empty() || expected > step) continue;
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool is_record =
        json.is_object() && json.contains("step") && json["step"].is_number_integer();
    if (!is_record) {
      throw CheckpointError(cat(path, " line ", number, " is not a record of a step, and step ",
                                expected,
                                " has not come yet. Fix: restore the file, or resume with "
                                "--output_dir in another folder"));
    }
    if (json.contains("event") || json["step"].get<int64_t>() < expected) continue;
    if (json["step"].get<int64_t>() > expected) break;
    ++expected;
  }
  if (expected > step) return "";
  return cat(path, " lacks step ", expected, " of the ", step,
             " before the checkpoint: its line is lost");
}

void continue_elsewhere(const std::string& from, const checkpoints::Checkpoint& checkpoint,
                        const std::string& to) {
  const int64_t step = checkpoint.trainer.step;
  for (const LogCut& cut : cut_logs(from, step)) {
    write_file_durably(join_path(to, cut.name), cut.parts.kept, "config");
  }
  const std::string name = checkpoints::checkpoint_name(step);
  const std::string temporary = join_path(to, checkpoints::temporary_name(step));
  create_directories(temporary);
  std::vector<std::string> files{std::string(checkpoints::kManifestFile)};
  for (const checkpoints::WrittenFile& file : checkpoint.manifest.files) files.push_back(file.name);
  for (const std::string& file : files) {
    const MappedFile source(join_path(checkpoint.path, file));
    FileWriter copy(join_path(temporary, file), "checkpoint.state");
    copy.write(source.data(), source.size());
    copy.sync();
    copy.close();
  }
  sync_directory(temporary, "checkpoint.sync_dir");
  rename_path(temporary, join_path(to, name), "checkpoint.rename");
  sync_directory(to, "checkpoint.sync_parent");
  write_file_durably(join_path(to, checkpoints::kLatestFile), name + "\n", "checkpoint.latest");
}

void remove_stale_files(const std::string& run_dir) {
  constexpr std::string_view kMark = ".tmp-";
  for (const std::string& name : list_directory(run_dir)) {
    const size_t mark = name.rfind(kMark);
    if (name.front() != '.' || mark == std::string::npos) continue;
    const std::string_view suffix = std::string_view(name).substr(mark + kMark.size());
    const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    const bool is_ours = is_run_file(std::string_view(name).substr(1, mark - 1)) &&
                         suffix.size() == 8 && std::all_of(suffix.begin(), suffix.end(), is_hex);
    if (is_ours && is_regular_file(join_path(run_dir, name))) remove_file(join_path(run_dir, name));
  }
}

std::string folder_fingerprint(const std::string& run_dir) {
  if (!is_directory(run_dir)) return "";
  std::string print;
  for (const std::string& name : list_directory(run_dir)) {
    if (name != checkpoints::kLockFile) print += name + "\n";
  }
  const std::string latest = join_path(run_dir, checkpoints::kLatestFile);
  return path_exists(latest) ? print + read_file(latest) : print;
}

}  // namespace assay::run
