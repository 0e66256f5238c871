// The canonical text of each component is documented in FORMAT.md, "State digest". Part of the
// format: a change here needs a new first line.
#include "checkpoints/state_digest.h"

#include <algorithm>
#include <array>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"

namespace assay::checkpoints {
namespace {

constexpr std::string_view kFirstLine = "assay state digest 1";

// In the order in which the total takes them.
constexpr std::array<std::string_view, 7> kComponents = {"model", "optimizer", "schedule", "scaler",
                                                         "rng",   "counters",  "data"};

// One line a tensor, sorted by name, which comes last because it may hold spaces.
std::string tensor_lines(const std::vector<TensorView>& tensors) {
  std::vector<const TensorView*> sorted;
  for (const TensorView& tensor : tensors) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(), [](const TensorView* left, const TensorView* right) {
    return left->name < right->name;
  });
  std::string text;
  const TensorView* previous = nullptr;
  for (const TensorView* tensor : sorted) {
    if (previous != nullptr && previous->name == tensor->name) {
      throw InternalError(cat("state digest: tensor ", quoted(tensor->name), " is given twice"));
    }
    std::vector<std::string> dimensions;
    for (const int64_t dimension : tensor->shape) dimensions.push_back(cat(dimension));
    text += cat(tensor->dtype, " [", join(dimensions, ","), "] ",
                sha256_hex(tensor->bytes, tensor->byte_count), " ", tensor->name, "\n");
    previous = tensor;
  }
  return text;
}

std::string schedule_lines(const TrainerState& state) {
  return cat("type ", state.schedule_type, "\ntotal_steps ", state.schedule_total_steps,
             "\nlast_learning_rate ", hex_float(state.last_learning_rate), "\n");
}

std::string scaler_lines(const TrainerState& state) {
  if (!state.scaler) return "none\n";
  return cat("scale ", hex_float(state.scaler->scale), "\ngrowth_tracker ",
             state.scaler->growth_tracker, "\n");
}

std::string rng_lines(std::vector<RankState> ranks) {
  std::sort(ranks.begin(), ranks.end(),
            [](const RankState& left, const RankState& right) { return left.rank < right.rank; });
  std::string text;
  for (const RankState& state : ranks) {
    text +=
        cat("rank ", state.rank, " cpu ", state.cpu_rng_hex, " cuda ", state.cuda_rng_hex, "\n");
  }
  return text;
}

// Without the best evaluation: how often a run evaluates is no part of its state.
std::string counter_lines(const TrainerState& state) {
  return cat("step ", state.step, "\nupdates ", state.updates, "\nskipped ", state.skipped,
             "\nsamples_seen ", state.samples_seen, "\ntokens_seen ", state.tokens_seen,
             "\nlast_loss ", hex_float(state.last_loss), "\n");
}

std::string data_lines(const TrainerState& state) {
  return cat("epoch ", state.epoch, "\nsamples_in_epoch ", state.samples_in_epoch, "\n");
}

std::string component_lines(std::string_view component, const StateParts& parts) {
  if (component == "model") return tensor_lines(parts.model);
  if (component == "optimizer") {
    return cat("name ", parts.trainer.optimizer, "\n", tensor_lines(parts.optimizer));
  }
  if (component == "schedule") return schedule_lines(parts.trainer);
  if (component == "scaler") return scaler_lines(parts.trainer);
  if (component == "rng") return rng_lines(parts.ranks);
  if (component == "counters") return counter_lines(parts.trainer);
  return data_lines(parts.trainer);
}

}  // namespace

std::span<const std::string_view> state_component_names() { return kComponents; }

std::string total_digest(const std::map<std::string, std::string>& components) {
  std::string text = cat(kFirstLine, "\n");
  for (const std::string_view name : kComponents) {
    const auto found = components.find(std::string(name));
    if (found == components.end()) throw InternalError(cat("state digest lacks ", name));
    text += cat(name, " ", found->second, "\n");
  }
  return sha256_hex(text);
}

StateDigest state_digest(const StateParts& parts) {
  StateDigest digest;
  for (const std::string_view name : kComponents) {
    const std::string text = cat(kFirstLine, " ", name, "\n", component_lines(name, parts));
    digest.components[std::string(name)] = sha256_hex(text);
  }
  digest.total = total_digest(digest.components);
  return digest;
}

}  // namespace assay::checkpoints
