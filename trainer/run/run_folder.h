// The run folder: what belongs to a run in it, its small files, and putting aside what a resume
// from an earlier step leaves behind. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/reader.h"
#include "trainer/config/run_config.h"

namespace assay::run {

inline constexpr std::string_view kConfigFile = "config.json";
inline constexpr std::string_view kEnvironmentFile = "environment.json";
inline constexpr std::string_view kMetricsFile = "metrics.jsonl";
inline constexpr std::string_view kResultFile = "result.json";
inline constexpr std::string_view kRanksFile = "ranks.json";  // several ranks: how they compare

// result.json: how a run ended.
struct RunResult {
  std::string status;  // completed | stopped | failed | diverged; part of the format
  int64_t final_step = 0;
  double final_loss = 0;     // may be non-finite
  std::string state_digest;  // of the newest checkpoint; empty if there is none
  std::string stop_reason;   // "max_steps reached", "SIGTERM", the error's text
  int exit_code = 0;
  double wall_seconds = 0;     // of this session
  double startup_seconds = 0;  // process start to the end of this session's first step
};
std::string to_json(const RunResult& result);
// Nothing if there is no such file. Throws CheckpointError if it cannot be read.
std::optional<RunResult> read_result(const std::string& run_dir);

// True if the folder holds a run or parts of one (config, metrics, latest or a checkpoint).
bool holds_run(const std::string& run_dir);
// Names of checkpoint folders, committed or not, in no particular order.
std::vector<std::string> checkpoint_folders(const std::string& run_dir);

// The stored configuration. Throws CheckpointError if there is none or it does not read.
config::RunConfig read_config(const std::string& run_dir);

// A run that died before its first save lost nothing that a save held: true if nothing in the
// folder shows that a checkpoint was ever committed (no `latest`, no checkpoint folder, no metrics
// past the first save).
bool has_never_saved(const std::string& run_dir);

// Creates the folder if need be and proves that it can be written: a file is written, synced and
// removed. Throws CheckpointError.
void prepare_folder(const std::string& run_dir);

// Removes the files of an earlier run (--overwrite_output_dir); foreign files stay.
void remove_run(const std::string& run_dir);

// What metrics.jsonl lacks of steps 1..`step`, in words; empty if nothing. Throws CheckpointError
// for a line among them that cannot be read: cutting there would lose what stands behind it.
std::string check_kept_lines(const std::string& run_dir, int64_t step);

// Moves metrics and id lines after `step`, and checkpoints other than `keep_name` that are newer
// or damaged, into abandoned-<n>/. Returns that folder's name, empty if there was nothing to move.
// Killed in the middle it leaves a folder from which the newest remaining checkpoint resumes.
std::string put_aside_later(const std::string& run_dir, int64_t step, const std::string& keep_name);

// Starts the run folder `to` as a continuation of a checkpoint that lies elsewhere: the metrics and
// id lines of `from` up to its step, then the checkpoint itself, committed by rename, then
// `latest`.
void continue_elsewhere(const std::string& from, const checkpoints::Checkpoint& checkpoint,
                        const std::string& to);

// Removes what a kill inside a durable write left: ".<file of a run>.tmp-<8 hex digits>".
void remove_stale_files(const std::string& run_dir);

// What a decision about a folder depends on, cheap to read: names in it and `latest`.
std::string folder_fingerprint(const std::string& run_dir);

}  // namespace assay::run
