// SHA-256 over the whole state of a run, by component, so that a difference can be named.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/safetensors.h"
#include "checkpoints/trainer_state.h"

namespace assay::checkpoints {

struct StateParts {
  std::vector<TensorView> model;  // weights and buffers
  std::vector<TensorView> optimizer;
  TrainerState trainer;
  std::vector<RankState> ranks;
};

struct StateDigest {
  std::string total;  // SHA-256 over the components in order
  std::map<std::string, std::string>
      components;  // model optimizer schedule scaler rng counters data
};

// Independent of the order of tensors in the parts, of the configuration's free fields, of paths
// and time. Two states have equal digests exactly if every component is equal bit for bit.
StateDigest state_digest(const StateParts& parts);

// The components in the order in which they enter the total.
std::span<const std::string_view> state_component_names();

// The total of given components (all of state_component_names() must be there).
std::string total_digest(const std::map<std::string, std::string>& components);

}  // namespace assay::checkpoints
