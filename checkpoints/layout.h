// Names and folders of a run: checkpoint-<step>/, latest, temporary folders, retention.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::checkpoints {

inline constexpr std::string_view kModelFile = "model.safetensors";
inline constexpr std::string_view kOptimizerFile = "optimizer.safetensors";
inline constexpr std::string_view kTrainerStateFile = "trainer_state.json";
inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kLatestFile = "latest";
inline constexpr std::string_view kLockFile = ".lock";

std::string checkpoint_name(int64_t step);                   // "checkpoint-15"
std::optional<int64_t> step_of_name(std::string_view name);  // of checkpoint_name's form only
std::string rank_file_name(int64_t rank);                    // "rank_00000.json"
bool is_temporary_name(std::string_view name);               // ".checkpoint-15.tmp-<random>"
std::string temporary_name(int64_t step);                    // a new one each call
bool is_checkpoint_file_name(std::string_view name);         // a file this format writes

// What forbids a name as that of a file directly in a folder ("leads out of the folder"); empty if
// nothing does.
std::string file_name_problem(std::string_view name);

struct CheckpointEntry {
  std::string path;
  int64_t step = 0;  // from the manifest, not the name
};

// Committed checkpoints of a run folder (a manifest is there and reads), sorted by step as a
// number; folders may have been renamed. Throws FileError if the folder cannot be read.
std::vector<CheckpointEntry> list_checkpoints(const std::string& run_dir);

// A folder that is, or looks like, a checkpoint.
struct CheckpointCandidate {
  std::string path;
  int64_t step = -1;    // -1: neither manifest nor name says
  std::string run_id;   // of the manifest
  std::string problem;  // empty: the manifest reads
};

// Every folder of a run folder with a manifest, readable or not, or with a checkpoint's name;
// sorted by step, then path. Links are not followed: what they lead to may lie elsewhere. Throws
// FileError if the folder cannot be read.
std::vector<CheckpointCandidate> list_candidates(const std::string& run_dir);

// True for a folder with a manifest.json in it.
bool is_checkpoint_folder(const std::string& path);

// What `latest` names, as a path; nothing if there is no such file. Throws CheckpointError if it
// names something outside the folder or missing.
std::optional<std::string> read_latest(const std::string& run_dir);

// Removes temporary folders that a killed save of this run left (only names of our own form that
// hold nothing but our own file names). Returns what was removed.
std::vector<std::string> remove_stale_temporaries(const std::string& run_dir);

// `path` without trailing slashes ("/" stays).
std::string without_trailing_slashes(std::string path);

// Which of `entries` to delete so that the newest `limit` by step stay; never `keep_path`s.
std::vector<std::string> checkpoints_to_delete(const std::vector<CheckpointEntry>& entries,
                                               int64_t limit,
                                               const std::vector<std::string>& keep_paths);

}  // namespace assay::checkpoints
