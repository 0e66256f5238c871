// Opening and verifying a checkpoint. Nothing of it is used before every byte was checked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/manifest.h"
#include "checkpoints/safetensors.h"
#include "checkpoints/state_digest.h"

namespace assay::checkpoints {

// An open, verified checkpoint; tensor views point into its maps.
struct Checkpoint {
  std::string path;  // the folder
  Manifest manifest;
  std::unique_ptr<SafetensorsFile> model;
  std::unique_ptr<SafetensorsFile> optimizer;
  TrainerState trainer;
  std::vector<RankState> ranks;  // sorted by rank
};

// Reads every byte and compares with the manifest: files missing, added, of another size or
// checksum, tensors that differ, state digest. Throws CheckpointError naming folder, file and
// tensor, what was found and expected.
Checkpoint open_checkpoint(const std::string& path);

struct VerifyFinding {
  std::string file;  // within the checkpoint; empty: the folder itself
  std::string problem;
};
// All problems, not just the first; empty if the checkpoint is whole.
std::vector<VerifyFinding> verify_checkpoint(const std::string& path);

// "model.safetensors is 100 bytes, its manifest says 200 (and 2 more problems)".
std::string findings_text(const std::vector<VerifyFinding>& findings);

// The newest checkpoint by step in a run folder that verifies, `except` left out; nothing if there
// is none or the folder cannot be read. Reads every byte of what it tries.
std::optional<std::string> newest_valid_checkpoint(const std::string& run_dir,
                                                   const std::string& except = "");

// What --resume_from_checkpoint means. `latest`: the folder's `latest`, which must exist and
// verify. `auto`: the newest valid one by step (damaged ones are named in `skipped`), nothing if
// the folder holds no run at all. PATH: a checkpoint folder, or a run folder (then its latest).
struct ResumeChoice {
  std::optional<std::string> path;
  std::vector<std::string> skipped;  // "checkpoint-40: model.safetensors is 100 bytes, ..."
};
// Throws CheckpointError (damaged or missing, with the newest that verifies as the fix).
ResumeChoice choose_resume(const std::string& request, const std::string& run_dir);

}  // namespace assay::checkpoints
