// The commit of a checkpoint (docs: FORMAT.md, "Commit"): temporary folder beside the target, parts
// written and synced, manifest last, rename, parent synced, `latest` moved, then retention.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoints/state_digest.h"

namespace assay::checkpoints {

struct CommitRequest {
  std::string run_dir;
  StateParts parts;  // of one process that holds everything (world size 1)
  int64_t world_size = 1;
  std::string config_digest;
  std::string data_digest;
  std::map<std::string, std::string> versions;
  int64_t save_total_limit = 0;         // 0: keep all
  std::vector<std::string> keep_paths;  // never rotated away (best, the one resumed from)
};

struct CommitResult {
  std::string path;  // run_dir/checkpoint-<step>
  std::string state_digest;
  uint64_t bytes = 0;
  double seconds = 0;
  std::vector<std::string> deleted;  // rotated away
};

// Blocks until durable. On failure removes the temporary folder, leaves older checkpoints and
// `latest` as they were, and throws CheckpointError with the reason ("no space left on device:
// needs 12 MB, 3 MB free") and the newest checkpoint that stands. An existing checkpoint of that
// step whose state digest is equal is left alone; another one there is an error. Fault points:
// checkpoint.begin, checkpoint.model.*, checkpoint.optimizer.*, checkpoint.state.*,
// checkpoint.manifest.*, checkpoint.sync_dir, checkpoint.rename, checkpoint.sync_parent,
// checkpoint.latest.*, checkpoint.rotate, checkpoint.done (and .open .write .fsync .close of
// files).
CommitResult commit_checkpoint(const CommitRequest& request);

}  // namespace assay::checkpoints
