// Which checkpoint a run goes on from: the meaning of --resume_from_checkpoint.
#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "checkpoints/reader.h"

namespace assay::checkpoints {
namespace {

std::string fix_text(const std::string& run_dir, const std::string& except) {
  const auto other = newest_valid_checkpoint(run_dir, except);
  if (!other) return "Fix: no checkpoint there verifies; start a new run in another --output_dir";
  return cat("Fix: --resume_from_checkpoint ", *other, ", the newest that verifies");
}

ResumeChoice choose_verified(const std::string& path, const std::string& run_dir,
                             const std::string& asked_by) {
  const std::vector<VerifyFinding> findings = verify_checkpoint(path);
  if (findings.empty()) return {.path = path, .skipped = {}};
  throw CheckpointError(cat(file_name(path), ", asked for by ", asked_by, ", does not verify: ",
                            findings_text(findings), " (", path, "). ", fix_text(run_dir, path)));
}

ResumeChoice choose_latest(const std::string& run_dir, const std::string& asked_by) {
  if (!is_directory(run_dir)) {
    throw CheckpointError(cat("cannot resume: ", run_dir, ", asked for by ", asked_by,
                              ", is not a folder. Fix: give the folder of a run"));
  }
  const auto latest = read_latest(run_dir);
  if (!latest) {
    throw CheckpointError(cat("cannot resume: ", run_dir,
                              " has no file `latest`, so no checkpoint was "
                              "finished there (asked for by ",
                              asked_by, "). ", fix_text(run_dir, "")));
  }
  return choose_verified(*latest, run_dir, asked_by);
}

// A folder in which no step was trained: starting at step 0 there loses nothing.
bool holds_a_run(const std::string& run_dir) {
  if (path_exists(join_path(run_dir, kLatestFile))) return true;
  if (path_exists(join_path(run_dir, "result.json"))) return true;
  const std::string metrics = join_path(run_dir, "metrics.jsonl");
  return is_regular_file(metrics) && file_bytes(metrics) > 0;
}

ResumeChoice choose_auto(const std::string& run_dir) {
  ResumeChoice choice;
  if (!path_exists(run_dir)) return choice;
  std::vector<CheckpointCandidate> candidates = list_candidates(run_dir);
  std::reverse(candidates.begin(), candidates.end());  // newest first
  for (const CheckpointCandidate& candidate : candidates) {
    const std::string name = file_name(candidate.path);
    if (!candidate.problem.empty()) {
      choice.skipped.push_back(cat(name, ": ", candidate.problem));
      continue;
    }
    const std::vector<VerifyFinding> findings = verify_checkpoint(candidate.path);
    if (findings.empty()) {
      choice.path = candidate.path;
      return choice;
    }
    choice.skipped.push_back(cat(name, ": ", findings_text(findings)));
  }
  if (!choice.skipped.empty()) {
    throw CheckpointError(cat("cannot resume: no checkpoint in ", run_dir,
                              " verifies: ", join(choice.skipped, "; "),
                              ". Fix: bring back a good copy, or start a "
                              "new run in another --output_dir"));
  }
  if (holds_a_run(run_dir)) {
    throw CheckpointError(cat("cannot resume: ", run_dir,
                              " holds a run but no checkpoint. Fix: bring its checkpoints back, or "
                              "start in another --output_dir"));
  }
  return choice;
}

// PATH does not exist: where else such a checkpoint lies is the likely fix.
[[noreturn]] void refuse_missing_path(const std::string& path, const std::string& run_dir) {
  const std::string inside = join_path(run_dir, path);
  std::string fix;
  if (path_exists(inside)) {
    fix = cat("Fix: --resume_from_checkpoint ", inside);
  } else {
    const std::string parent = parent_path(path);
    fix = fix_text(is_directory(parent) && parent != "." ? parent : run_dir, "");
  }
  throw CheckpointError(cat("cannot resume from ", quoted(path), ": it does not exist. ", fix));
}

ResumeChoice choose_path(const std::string& request, const std::string& run_dir) {
  const std::string path = without_trailing_slashes(request);
  if (!path_exists(path)) refuse_missing_path(path, run_dir);
  if (!is_directory(path)) {
    if (file_name(path) == kManifestFile || is_checkpoint_file_name(file_name(path))) {
      throw CheckpointError(cat("cannot resume from ", path,
                                ": it is a file of a checkpoint. Fix: "
                                "give the folder, ",
                                parent_path(path)));
    }
    // Its own reader knows what else it may be: a pickle, an archive, a pointer.
    const SafetensorsFile file(path);
    throw CheckpointError(cat("cannot resume from ", path, ": it is a file with ",
                              file.tensors().size(),
                              " tensors, a checkpoint is a folder with optimizer "
                              "and counters too. Fix: give the folder of a checkpoint"));
  }
  if (is_checkpoint_folder(path) || step_of_name(file_name(path))) {
    return choose_verified(path, parent_path(path), "PATH");
  }
  return choose_latest(path, "PATH, a run folder");
}

}  // namespace

ResumeChoice choose_resume(const std::string& request, const std::string& run_dir) {
  try {
    if (request.empty()) {
      throw CheckpointError(
          "--resume_from_checkpoint is empty, must be PATH, latest or auto. Fix: "
          "give one of them");
    }
    if (request == "auto") return choose_auto(run_dir);
    if (request == "latest") return choose_latest(run_dir, "latest");
    return choose_path(request, run_dir);
  } catch (const FileError& error) {
    throw CheckpointError(cat("cannot resume from ", quoted(request), ": ", error.what(),
                              ". Fix: give a readable folder"));
  }
}

}  // namespace assay::checkpoints
