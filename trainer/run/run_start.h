// What a `train` command means for the folder it points at: a fresh start, a resume, or nothing
// left to do. Reads only; whoever acts on it holds the folder's lock. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/reader.h"
#include "trainer/config/run_config.h"

namespace assay::run {

enum class StartKind { kFresh, kResume, kComplete };

struct RunStart {
  StartKind kind = StartKind::kFresh;
  config::RunConfig config;                           // output_dir is set
  std::optional<checkpoints::Checkpoint> checkpoint;  // kResume: open and verified
  std::string source_run_dir;                         // kResume: the run that holds it
  bool is_same_folder = true;                         // kResume: output_dir is that run
  bool is_default_folder = false;                     // kFresh: nobody named output_dir
  int64_t schedule_total_steps = 0;                   // kResume: the horizon; 0: none
  std::vector<std::string> notes;                     // for the log: what was chosen and skipped
};

// `words`: those after "train". `is_restart`: an elastic agent starts this program again, so that
// `auto` is the default of --resume_from_checkpoint. On another number of ranks than before the
// global batch is kept: accumulation is adapted first, then the micro-batch. Throws ConfigError
// (another configuration, incomplete run, changed fields, exhausted schedule) and CheckpointError.
RunStart decide_start(std::span<const std::string> words, bool is_restart, int64_t world_size = 1);

}  // namespace assay::run
