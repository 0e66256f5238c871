// Everything of a run's state that is not a tensor: counters, data position, schedule, scaler, RNG.
// Stored as trainer_state.json and rank_<r>.json; torch-free. See FORMAT.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::checkpoints {

struct ScalerState {
  double scale = 1.0;
  int64_t growth_tracker = 0;
  bool operator==(const ScalerState&) const = default;
};

struct BestEvaluation {
  int64_t step = 0;
  double loss = 0;
  bool operator==(const BestEvaluation&) const = default;
};

struct TrainerState {
  int64_t step = 0;     // update attempts
  int64_t updates = 0;  // applied; schedule and optimizer follow it
  int64_t skipped = 0;
  int64_t samples_seen = 0;
  int64_t tokens_seen = 0;
  int64_t epoch = 0;  // data position: epoch and samples consumed in it
  int64_t samples_in_epoch = 0;
  std::string schedule_type;
  int64_t schedule_total_steps = 0;   // horizon, fixed at the first start
  double last_learning_rate = 0;      // of the last update, bit-exact in the file
  double last_loss = 0;               // may be non-finite
  std::string optimizer;              // "adamw"
  std::optional<ScalerState> scaler;  // fp16 only
  std::optional<BestEvaluation> best;
  std::string run_id;       // made at the first start; lineage of a run
  std::string config_json;  // the resolved configuration (config_to_json)
  bool operator==(const TrainerState&) const = default;
};

// One rank's private state.
struct RankState {
  int64_t rank = 0;
  std::string cpu_rng_hex;   // at::CPUGeneratorImpl state
  std::string cuda_rng_hex;  // empty without CUDA
  bool operator==(const RankState&) const = default;
};

std::string to_json(const TrainerState& state);
std::string to_json(const RankState& state);
// Throw CheckpointError naming `origin` and the field that is missing, unknown or of a wrong type.
TrainerState trainer_state_from_json(std::string_view text, const std::string& origin);
RankState rank_state_from_json(std::string_view text, const std::string& origin);

}  // namespace assay::checkpoints
