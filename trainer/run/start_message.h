// Rank 0's decision about a run's start, as text for the other ranks: one looks at the file system,
// all do the same. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/trainer_state.h"
#include "trainer/config/run_config.h"
#include "trainer/run/run_start.h"

namespace assay::run {

struct StartMessage {
  config::RunConfig config;  // output_dir as an absolute path
  bool is_complete = false;  // nothing is left to do
  int64_t schedule_total_steps = 0;
  // A resume; path empty otherwise.
  std::string checkpoint_path;
  checkpoints::TrainerState trainer;
  std::vector<checkpoints::RankState> ranks;
  std::string run_id;  // of a fresh run
};

std::string to_json(const StartMessage& message);
StartMessage start_message_from_json(const std::string& text);  // throws LaunchError

}  // namespace assay::run
