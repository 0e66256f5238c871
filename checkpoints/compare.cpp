#include "checkpoints/compare.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/compare_logs.h"
#include "checkpoints/compare_state.h"
#include "checkpoints/layout.h"
#include "checkpoints/manifest.h"

namespace assay::checkpoints {
namespace {

enum class FolderKind { kCheckpoint, kRun };

FolderKind kind_of(const std::string& path) {
  if (!is_directory(path)) {
    throw CheckpointError(cat(path, path_exists(path) ? " is not a folder" : " does not exist",
                              ". Fix: give the folder of a run or of a checkpoint"));
  }
  if (path_exists(join_path(path, kManifestFile))) return FolderKind::kCheckpoint;
  if (is_regular_file(join_path(path, kMetricsFile))) return FolderKind::kRun;
  if (!list_candidates(path).empty()) return FolderKind::kRun;
  throw CheckpointError(cat(path,
                            " holds neither manifest.json nor metrics.jsonl nor checkpoints. Fix: "
                            "give the folder of a run or of a checkpoint"));
}

// By step. A manifest that does not read is damage, not absence.
std::map<int64_t, std::string> checkpoints_of(const std::string& run) {
  std::map<int64_t, std::string> checkpoints;
  for (const CheckpointCandidate& candidate : list_candidates(run)) {
    if (candidate.problem.empty()) {
      checkpoints.emplace(candidate.step, candidate.path);
    } else if (path_exists(join_path(candidate.path, kManifestFile))) {
      throw CheckpointError(candidate.problem);
    }
  }
  return checkpoints;
}

std::string config_digest_of(const std::string& checkpoint) {
  const std::string path = join_path(checkpoint, kManifestFile);
  return manifest_from_json(read_file(path), path).config_digest;
}

// Not a difference of the runs, but the likely reason of one.
void note_other_configuration(const std::string& left, const std::string& right,
                              Comparison& comparison) {
  if (comparison.differences.empty()) return;
  if (config_digest_of(left) == config_digest_of(right)) return;
  std::string& reason = comparison.differences.front().likely_reason;
  reason += cat(reason.empty() ? "" : "; ", "the runs have different configurations");
}

void compare_run_folders(const std::string& left, const std::string& right,
                         Comparison& comparison) {
  const std::map<int64_t, std::string> left_checkpoints = checkpoints_of(left);
  const std::map<int64_t, std::string> right_checkpoints = checkpoints_of(right);
  std::set<int64_t> saved_steps;
  for (const auto* checkpoints : {&left_checkpoints, &right_checkpoints}) {
    for (const auto& [step, unused] : *checkpoints) saved_steps.insert(step);
  }
  compare_ledgers(left, right, comparison);
  const bool has_metrics =
      path_exists(join_path(left, kMetricsFile)) || path_exists(join_path(right, kMetricsFile));
  if (has_metrics) compare_metrics(left, right, saved_steps, comparison);  // else checkpoints alone
  for (const auto& [step, path] : left_checkpoints) {
    const auto other = right_checkpoints.find(step);
    if (other != right_checkpoints.end())
      compare_checkpoint_folders(path, other->second, comparison);
  }
  // Ledgers, metrics and checkpoints stay in this order within a step: causes first.
  std::stable_sort(comparison.differences.begin(), comparison.differences.end(),
                   [](const Difference& a, const Difference& b) { return a.step < b.step; });
  if (!left_checkpoints.empty() && !right_checkpoints.empty()) {
    note_other_configuration(left_checkpoints.rbegin()->second, right_checkpoints.rbegin()->second,
                             comparison);
  }
}

// Two runs with nothing in common are not equal: there is no verdict.
void require_something(const Comparison& comparison) {
  if (comparison.compared_steps > 0 || comparison.compared_checkpoints > 0) return;
  if (!comparison.differences.empty()) return;
  throw CheckpointError(cat("cannot compare ", comparison.left, " and ", comparison.right,
                            ": they have no step and no checkpoint in common. Fix: let both run "
                            "to a common step"));
}

}  // namespace

Comparison compare_runs(const std::string& left, const std::string& right) {
  Comparison comparison;
  comparison.left = without_trailing_slashes(left);
  comparison.right = without_trailing_slashes(right);
  try {
    const FolderKind left_kind = kind_of(comparison.left);
    const FolderKind right_kind = kind_of(comparison.right);
    if (left_kind != right_kind) {
      const bool is_left_run = left_kind == FolderKind::kRun;
      throw CheckpointError(cat(left, " is ", is_left_run ? "a run" : "a checkpoint", " and ",
                                right, " is ", is_left_run ? "a checkpoint" : "a run",
                                ". Fix: give two runs or two checkpoints"));
    }
    if (left_kind == FolderKind::kRun) {
      compare_run_folders(comparison.left, comparison.right, comparison);
    } else {
      compare_checkpoint_folders(comparison.left, comparison.right, comparison);
      note_other_configuration(comparison.left, comparison.right, comparison);
    }
  } catch (const FileError& error) {
    throw CheckpointError(cat("cannot compare: ", error.what(), ". Fix: give readable folders"));
  }
  require_something(comparison);
  return comparison;
}

}  // namespace assay::checkpoints
