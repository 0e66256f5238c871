#include "checkpoints/compare_state.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "checkpoints/reader.h"
#include "checkpoints/tensor_shape.h"
#include "checkpoints/tensor_values.h"

namespace assay::checkpoints {
namespace {

struct Collector {
  Comparison& comparison;
  int64_t step;
  std::string place;  // "checkpoint-30"

  void add(std::string_view file, std::string field, std::string left, std::string right,
           std::string reason, double relative = 0) {
    comparison.differences.push_back({.step = step,
                                      .where = cat(place, " ", file),
                                      .field = std::move(field),
                                      .left = std::move(left),
                                      .right = std::move(right),
                                      .likely_reason = std::move(reason),
                                      .relative_difference = relative});
    comparison.max_relative_difference = std::max(comparison.max_relative_difference, relative);
  }
  void add_unequal(std::string field, const std::string& left, const std::string& right,
                   std::string_view reason) {
    if (left == right) return;
    add(kTrainerStateFile, std::move(field), left, right, std::string(reason));
  }
};

std::string exact_text(double value) {
  return cat(number_text(value), " (", hex_float(value), ")");
}

std::string scaler_text(const std::optional<ScalerState>& scaler) {
  return scaler
             ? cat("scale ", exact_text(scaler->scale), ", growth_tracker ", scaler->growth_tracker)
             : "none";
}

// run_id and config_json are not state: a control run has others.
void compare_trainer(Collector& out, const TrainerState& left, const TrainerState& right) {
  constexpr std::string_view kCounters = "counters: not restored, or steps were lost or repeated";
  constexpr std::string_view kData =
      "data position: not restored, or samples were lost or repeated";
  constexpr std::string_view kSchedule = "schedule: another type, horizon or position";
  out.add_unequal("step", cat(left.step), cat(right.step),
                  "the checkpoints are of different steps");
  out.add_unequal("updates", cat(left.updates), cat(right.updates), kCounters);
  out.add_unequal("skipped", cat(left.skipped), cat(right.skipped), kCounters);
  out.add_unequal("samples_seen", cat(left.samples_seen), cat(right.samples_seen), kCounters);
  out.add_unequal("tokens_seen", cat(left.tokens_seen), cat(right.tokens_seen), kCounters);
  out.add_unequal("epoch", cat(left.epoch), cat(right.epoch), kData);
  out.add_unequal("samples_in_epoch", cat(left.samples_in_epoch), cat(right.samples_in_epoch),
                  kData);
  out.add_unequal("schedule_type", left.schedule_type, right.schedule_type, kSchedule);
  out.add_unequal("schedule_total_steps", cat(left.schedule_total_steps),
                  cat(right.schedule_total_steps), kSchedule);
  out.add_unequal("last_learning_rate", exact_text(left.last_learning_rate),
                  exact_text(right.last_learning_rate), kSchedule);
  out.add_unequal("scaler", scaler_text(left.scaler), scaler_text(right.scaler),
                  "gradient scaler: not restored, or other steps overflowed");
  out.add_unequal("optimizer", left.optimizer, right.optimizer, "configuration: another optimizer");
  out.add_unequal("last_loss", exact_text(left.last_loss), exact_text(right.last_loss),
                  "the last step was computed from other weights, samples or random numbers");
}

std::string rng_text(const std::string& hex) {
  if (hex.empty()) return "none";
  return cat(hex.size() / 2, " bytes, XXH3 ", xxh3_hex(hex.data(), hex.size()));
}

void compare_ranks(Collector& out, const std::vector<RankState>& left,
                   const std::vector<RankState>& right) {
  constexpr std::string_view kReason =
      "RNG: not restored, or another count of random numbers was drawn";
  if (left.size() != right.size()) {
    out.add(kManifestFile, "world_size", cat(left.size()), cat(right.size()),
            "configuration: another number of ranks");
    return;
  }
  for (size_t index = 0; index < left.size(); ++index) {
    const std::string file = rank_file_name(left[index].rank);
    if (left[index].cpu_rng_hex != right[index].cpu_rng_hex) {
      out.add(file, "rng cpu", rng_text(left[index].cpu_rng_hex),
              rng_text(right[index].cpu_rng_hex), std::string(kReason));
    }
    if (left[index].cuda_rng_hex != right[index].cuda_rng_hex) {
      out.add(file, "rng cuda", rng_text(left[index].cuda_rng_hex),
              rng_text(right[index].cuda_rng_hex), std::string(kReason));
    }
  }
}

// Tensors of both by name, sorted; nullptr where one has no such tensor.
template <class Tensor>
std::map<std::string, std::pair<const Tensor*, const Tensor*>> paired(
    const std::vector<Tensor>& left, const std::vector<Tensor>& right) {
  std::map<std::string, std::pair<const Tensor*, const Tensor*>> pairs;
  for (const Tensor& tensor : left) pairs[tensor.name].first = &tensor;
  for (const Tensor& tensor : right) pairs[tensor.name].second = &tensor;
  return pairs;
}

// Names, dtypes and shapes; true if values can be compared.
template <class Tensor>
bool compare_kind(Collector& out, std::string_view file, const Tensor* left, const Tensor* right) {
  const auto kind = [](const Tensor* tensor) {
    return tensor == nullptr ? "absent" : cat(tensor->dtype, " ", shape_text(tensor->shape));
  };
  const std::string left_kind = kind(left);
  const std::string right_kind = kind(right);
  if (left_kind == right_kind) return true;
  out.add(file, left != nullptr ? left->name : right->name, left_kind, right_kind,
          "configuration: another model or optimizer");
  return false;
}

// Returns whether anything differs.
bool compare_tensors(Collector& out, std::string_view file, const SafetensorsFile& left,
                     const SafetensorsFile& right, const std::string& reason) {
  const size_t before = out.comparison.differences.size();
  for (const auto& [name, pair] : paired(left.tensors(), right.tensors())) {
    const auto [left_tensor, right_tensor] = pair;
    ++out.comparison.compared_tensors;
    if (!compare_kind(out, file, left_tensor, right_tensor)) continue;
    const auto index = first_difference(*left_tensor, *right_tensor);
    if (!index) continue;
    out.add(file, element_name(*left_tensor, *index), element_text(*left_tensor, *index),
            element_text(*right_tensor, *index), reason,
            relative_difference(*left_tensor, *right_tensor));
  }
  return out.comparison.differences.size() != before;
}

bool is_manifest_only(const std::string& folder) {
  return list_directory(folder) == std::vector<std::string>{std::string(kManifestFile)};
}

Manifest read_manifest_of(const std::string& folder) {
  const std::string path = join_path(folder, kManifestFile);
  return manifest_from_json(read_file(path), path);
}

bool compare_checksums(Collector& out, const WrittenFile& left, const WrittenFile& right,
                       const std::string& reason) {
  const size_t before = out.comparison.differences.size();
  for (const auto& [name, pair] : paired(left.tensors, right.tensors)) {
    const auto [left_tensor, right_tensor] = pair;
    ++out.comparison.compared_tensors;
    if (!compare_kind(out, left.name, left_tensor, right_tensor)) continue;
    if (left_tensor->xxh3 == right_tensor->xxh3) continue;
    out.add(left.name, name, cat("XXH3 ", left_tensor->xxh3), cat("XXH3 ", right_tensor->xxh3),
            reason);
  }
  return out.comparison.differences.size() != before;
}

constexpr std::string_view kModelReason =
    "weights: other values were restored, or the steps before computed others";
std::string optimizer_reason(bool is_model_different) {
  return is_model_different ? "follows the weights, or optimizer state: not restored"
                            : "optimizer state: not restored, while the weights are still equal";
}

// Evidence keeps a checkpoint as its manifest: components and checksums say what differs.
void compare_manifests(Collector& out, const Manifest& left, const Manifest& right) {
  const size_t before = out.comparison.differences.size();
  for (const std::string_view name : state_component_names()) {
    const std::string component(name);
    if (component == "model" || component == "optimizer") continue;  // by tensor, below
    const std::string& left_digest = left.state_components.at(component);
    const std::string& right_digest = right.state_components.at(component);
    if (left_digest == right_digest) continue;
    out.add(kManifestFile, cat("state_components.", component), left_digest, right_digest,
            cat(component, ": not restored or not equal from the start"));
  }
  bool is_model_different = false;
  for (const std::string_view name : {kModelFile, kOptimizerFile}) {
    const auto is_named = [&](const WrittenFile& file) { return file.name == name; };
    const auto left_file = std::find_if(left.files.begin(), left.files.end(), is_named);
    const auto right_file = std::find_if(right.files.begin(), right.files.end(), is_named);
    if (left_file == left.files.end() || right_file == right.files.end()) {
      throw CheckpointError(cat(out.place, ": a manifest does not name ", name,
                                ". Fix: give the folder of a checkpoint"));
    }
    const bool is_model = name == kModelFile;
    const bool is_different = compare_checksums(
        out, *left_file, *right_file,
        is_model ? std::string(kModelReason) : optimizer_reason(is_model_different));
    if (is_model) is_model_different = is_different;
  }
  if (left.state_digest != right.state_digest && out.comparison.differences.size() == before) {
    out.add(kManifestFile, "state_digest", left.state_digest, right.state_digest,
            "configuration: another optimizer");
  }
}

}  // namespace

void compare_checkpoint_folders(const std::string& left, const std::string& right,
                                Comparison& comparison) {
  ++comparison.compared_checkpoints;
  const bool is_by_manifest = is_manifest_only(left) || is_manifest_only(right);
  if (is_by_manifest) {
    for (const std::string& folder : {left, right}) {
      if (!is_manifest_only(folder)) open_checkpoint(folder);  // throws if it is damaged
    }
    const Manifest left_manifest = read_manifest_of(left);
    Collector out{comparison, left_manifest.step, checkpoint_name(left_manifest.step)};
    compare_manifests(out, left_manifest, read_manifest_of(right));
    return;
  }
  const Checkpoint left_state = open_checkpoint(left);
  const Checkpoint right_state = open_checkpoint(right);
  Collector out{comparison, left_state.manifest.step, checkpoint_name(left_state.manifest.step)};
  compare_trainer(out, left_state.trainer, right_state.trainer);
  compare_ranks(out, left_state.ranks, right_state.ranks);
  const bool is_model_different = compare_tensors(out, kModelFile, *left_state.model,
                                                  *right_state.model, std::string(kModelReason));
  compare_tensors(out, kOptimizerFile, *left_state.optimizer, *right_state.optimizer,
                  optimizer_reason(is_model_different));
}

}  // namespace assay::checkpoints
