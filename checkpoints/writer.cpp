#include "checkpoints/writer.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/fault_points.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "checkpoints/manifest.h"
#include "checkpoints/reader.h"

namespace assay::checkpoints {
namespace {

struct TextFile {
  std::string name;
  std::string text;
  std::string_view fault_site;
};

void check_request(const CommitRequest& request) {
  const std::vector<RankState>& ranks = request.parts.ranks;
  if (static_cast<int64_t>(ranks.size()) != request.world_size) {
    throw InternalError(cat("checkpoint of step ", request.parts.trainer.step, " has the state of ",
                            ranks.size(), " ranks, the world has ", request.world_size));
  }
  std::vector<int64_t> numbers;
  for (const RankState& state : ranks) numbers.push_back(state.rank);
  std::sort(numbers.begin(), numbers.end());
  for (size_t index = 0; index < numbers.size(); ++index) {
    if (numbers[index] == static_cast<int64_t>(index)) continue;
    throw InternalError(
        cat("checkpoint of step ", request.parts.trainer.step, " lacks the state of rank ", index));
  }
}

std::vector<TextFile> text_files(const StateParts& parts) {
  std::vector<TextFile> files;
  files.push_back({std::string(kTrainerStateFile), to_json(parts.trainer), "checkpoint.state"});
  for (const RankState& state : parts.ranks) {
    files.push_back({rank_file_name(state.rank), to_json(state), "checkpoint.rank"});
  }
  return files;
}

// An upper bound: headers and manifest are counted at what a tensor's entries can take at most.
uint64_t bytes_needed(const StateParts& parts, const std::vector<TextFile>& texts) {
  constexpr uint64_t kFixedBytes = 64 * 1024;  // folders, the manifest's fixed part, `latest`
  constexpr uint64_t kEntryBytes = 1024;       // header entry + manifest entry without the name
  uint64_t bytes = kFixedBytes;
  for (const TextFile& file : texts) bytes += file.text.size() + kEntryBytes;
  for (const auto* tensors : {&parts.model, &parts.optimizer}) {
    for (const TensorView& tensor : *tensors) {
      bytes += tensor.byte_count + 2 * tensor.name.size() + kEntryBytes;
    }
  }
  return bytes;
}

// Before anything is written: a disk that cannot hold the checkpoint is not filled up first.
void check_room(const std::string& run_dir, uint64_t needed, size_t file_count) {
  const DiskSpace space = disk_space(run_dir);
  if (space.free_bytes < needed) {
    throw CheckpointError(cat("no space left on device: needs ", bytes_text(needed), " (", needed,
                              " bytes), ", bytes_text(space.free_bytes), " (", space.free_bytes,
                              " bytes) free"));
  }
  const uint64_t inodes = file_count + 2;  // the folder and the temporary `latest`
  if (space.total_inodes > 0 && space.free_inodes < inodes) {
    throw CheckpointError(
        cat("no inodes left on device: needs ", inodes, ", ", space.free_inodes, " free"));
  }
}

WrittenFile write_text_file(const std::string& folder, const TextFile& file) {
  FileWriter writer(join_path(folder, file.name), file.fault_site);
  writer.write(file.text);
  writer.sync();
  writer.close();
  return {.name = file.name,
          .bytes = file.text.size(),
          .xxh3 = xxh3_hex(file.text.data(), file.text.size()),
          .tensors = {}};
}

Manifest describe(const CommitRequest& request, const StateDigest& digest) {
  Manifest manifest;
  manifest.step = request.parts.trainer.step;
  manifest.world_size = request.world_size;
  manifest.run_id = request.parts.trainer.run_id;
  manifest.created_utc = utc_timestamp();
  manifest.config_digest = request.config_digest;
  manifest.data_digest = request.data_digest;
  manifest.state_digest = digest.total;
  manifest.state_components = digest.components;
  manifest.versions = request.versions;
  return manifest;
}

// Everything into the temporary folder, the manifest last, all of it on the disk. Returns the
// bytes.
uint64_t write_parts(const CommitRequest& request, const std::string& folder,
                     const std::vector<TextFile>& texts, Manifest manifest) {
  const std::map<std::string, std::string> metadata = {{"step", cat(manifest.step)},
                                                       {"run_id", manifest.run_id}};
  create_directories(folder);
  manifest.files.push_back(write_safetensors(join_path(folder, kModelFile), request.parts.model,
                                             metadata, "checkpoint.model"));
  manifest.files.push_back(write_safetensors(join_path(folder, kOptimizerFile),
                                             request.parts.optimizer, metadata,
                                             "checkpoint.optimizer"));
  for (const TextFile& file : texts) manifest.files.push_back(write_text_file(folder, file));
  std::sort(
      manifest.files.begin(), manifest.files.end(),
      [](const WrittenFile& left, const WrittenFile& right) { return left.name < right.name; });
  uint64_t bytes = 0;
  for (const WrittenFile& file : manifest.files) bytes += file.bytes;
  const TextFile last{std::string(kManifestFile), manifest_to_json(manifest),
                      "checkpoint.manifest"};
  bytes += write_text_file(folder, last).bytes;
  sync_directory(folder, "checkpoint.sync_dir");
  return bytes;
}

// A failed save must not leave litter; a second failure while cleaning up is named, not hidden.
std::string discard(const std::string& folder) {
  try {
    remove_tree(folder);
    return "";
  } catch (const FileError& error) {
    return cat("; the temporary folder stays: ", error.what());
  }
}

std::string standing_text(const std::string& run_dir) {
  try {
    const std::vector<CheckpointEntry> entries = list_checkpoints(run_dir);
    if (entries.empty()) return "no older checkpoint stands";
    return cat(file_name(entries.back().path), " stands");
  } catch (const FileError&) {
    return "older checkpoints cannot be listed";  // the folder is what failed; the cause is told
  }
}

[[noreturn]] void refuse_save(const std::string& target, const std::string& reason,
                              const std::string& rest) {
  throw CheckpointError(cat("cannot save ", file_name(target), ": ", reason, rest, " (",
                            parent_path(target), "); ", standing_text(parent_path(target)),
                            ". Fix: make room or make the folder writable, then resume"));
}

std::string reason_of(const FileError& error, const std::string& run_dir, uint64_t needed) {
  const bool is_full = error.error_number() == ENOSPC || error.error_number() == EDQUOT;
  if (!is_full) return error.what();
  try {
    return cat(error.what(), ": needs ", bytes_text(needed), ", ",
               bytes_text(disk_space(run_dir).free_bytes), " free");
  } catch (const FileError&) {
    return error.what();  // the first failure tells more than that the space cannot be measured
  }
}

// True if a checkpoint with the same state is there already; throws if something else is.
bool is_saved_already(const std::string& target, const std::string& digest) {
  if (!path_exists(target)) return false;
  const std::vector<VerifyFinding> findings = verify_checkpoint(target);
  if (!findings.empty()) {
    throw CheckpointError(cat("cannot save ", file_name(target),
                              ": a folder of that name is there and "
                              "does not verify: ",
                              findings_text(findings), " (", target,
                              "). Fix: move it away and resume"));
  }
  const std::string path = join_path(target, kManifestFile);
  const Manifest manifest = manifest_from_json(read_file(path), path);
  if (manifest.state_digest == digest) return true;
  throw CheckpointError(cat("cannot save ", file_name(target),
                            ": another state of that step is there (", target, "), digest ",
                            manifest.state_digest, ", to be saved ", digest,
                            ". Fix: use another --output_dir, or move it away and resume"));
}

void write_new(const CommitRequest& request, const StateDigest& digest, CommitResult& result) {
  const std::vector<TextFile> texts = text_files(request.parts);
  const uint64_t needed = bytes_needed(request.parts, texts);
  const std::string folder = join_path(request.run_dir, temporary_name(request.parts.trainer.step));
  try {
    check_room(request.run_dir, needed, texts.size() + 3);
    result.bytes = write_parts(request, folder, texts, describe(request, digest));
    rename_path(folder, result.path, "checkpoint.rename");
  } catch (const FileError& error) {
    const std::string reason = reason_of(error, request.run_dir, needed);
    refuse_save(result.path, reason, discard(folder));
  } catch (const CheckpointError& error) {
    refuse_save(result.path, error.what(), discard(folder));
  } catch (...) {
    discard(folder);
    throw;
  }
}

// Only what this run wrote, under the name that it gave: a renamed folder is somebody's choice.
std::vector<CheckpointEntry> own_checkpoints(const CommitRequest& request) {
  std::vector<CheckpointEntry> entries;
  for (const CheckpointCandidate& candidate : list_candidates(request.run_dir)) {
    const bool is_own = candidate.problem.empty() &&
                        candidate.run_id == request.parts.trainer.run_id &&
                        file_name(candidate.path) == checkpoint_name(candidate.step);
    if (is_own) entries.push_back({.path = candidate.path, .step = candidate.step});
  }
  return entries;
}

// A kill in the middle must not leave half a checkpoint under a final name: renamed first.
std::vector<std::string> rotate(const CommitRequest& request, const std::string& committed) {
  std::vector<std::string> keep = request.keep_paths;
  keep.push_back(committed);
  const std::vector<std::string> doomed =
      checkpoints_to_delete(own_checkpoints(request), request.save_total_limit, keep);
  for (const std::string& path : doomed) {
    const int64_t step = step_of_name(file_name(path)).value_or(0);
    const std::string hidden = join_path(request.run_dir, temporary_name(step));
    rename_path(path, hidden, "checkpoint.rotate");
    remove_tree(hidden);
  }
  return doomed;
}

// The checkpoint stands under its name; what fails from here on does not take it back.
void publish(const CommitRequest& request, CommitResult& result) {
  std::string doing = "its name is perhaps not durable yet";
  try {
    sync_directory(request.run_dir, "checkpoint.sync_parent");
    doing = "`latest` does not name it";
    write_file_durably(join_path(request.run_dir, kLatestFile), file_name(result.path) + "\n",
                       "checkpoint.latest");
    doing = "older checkpoints were not removed";
    result.deleted = rotate(request, result.path);
  } catch (const FileError& error) {
    throw CheckpointError(cat(file_name(result.path), " is complete in ", request.run_dir, ", but ",
                              doing, ": ", error.what(),
                              ". Fix: repair the disk or folder, then "
                              "--resume_from_checkpoint auto"));
  }
}

}  // namespace

CommitResult commit_checkpoint(const CommitRequest& request) {
  const double start = monotonic_seconds();
  check_request(request);
  CommitResult result;
  result.path = join_path(request.run_dir, checkpoint_name(request.parts.trainer.step));
  fault_point("checkpoint.begin");
  const StateDigest digest = state_digest(request.parts);
  result.state_digest = digest.total;
  if (!is_saved_already(result.path, digest.total)) write_new(request, digest, result);
  publish(request, result);
  fault_point("checkpoint.done");
  result.seconds = monotonic_seconds() - start;
  return result;
}

}  // namespace assay::checkpoints
