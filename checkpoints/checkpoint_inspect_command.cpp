// `assay checkpoint inspect` and `digest`.
#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/checkpoint_subcommands.h"
#include "checkpoints/json_fields.h"
#include "checkpoints/layout.h"
#include "checkpoints/reader.h"
#include "checkpoints/tensor_shape.h"

namespace assay::checkpoints {
namespace {

using Json = nlohmann::ordered_json;

Json tensors_json(const SafetensorsFile& file) {
  Json tensors = Json::array();
  for (const TensorView& tensor : file.tensors()) {
    Json entry;
    entry["name"] = tensor.name;
    entry["dtype"] = tensor.dtype;
    entry["shape"] = tensor.shape;
    entry["bytes"] = tensor.byte_count;
    tensors.push_back(std::move(entry));
  }
  return tensors;
}

std::string tensors_text(const SafetensorsFile& file) {
  size_t width = 0;
  for (const TensorView& tensor : file.tensors())
    width = std::max(width, escaped(tensor.name).size());
  std::string text = cat(file_name(file.path()), ": ", file.tensors().size(), " tensors, ",
                         bytes_text(file.bytes()), "\n");
  for (const TensorView& tensor : file.tensors()) {
    const std::string name = escaped(tensor.name);
    text += cat("  ", name, std::string(width + 2 - name.size(), ' '), tensor.dtype,
                std::string(6 - tensor.dtype.size(), ' '), shape_text(tensor.shape), "\n");
  }
  return text;
}

int inspect_file(const std::string& path, bool is_json) {
  const SafetensorsFile file(path);
  Json json;
  json["path"] = escaped(path);
  json["bytes"] = file.bytes();
  json["metadata"] = file.metadata();
  json["tensors"] = tensors_json(file);
  std::cout << (is_json ? dump_json(json, path) : tensors_text(file));
  return static_cast<int>(ExitCode::kOk);
}

Json checkpoint_json(const Checkpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest;
  Json json;
  json["path"] = escaped(checkpoint.path);
  json["step"] = manifest.step;
  json["world_size"] = manifest.world_size;
  json["run_id"] = manifest.run_id;
  json["created_utc"] = manifest.created_utc;
  json["config_digest"] = manifest.config_digest;
  json["data_digest"] = manifest.data_digest;
  json["state_digest"] = manifest.state_digest;
  json["versions"] = manifest.versions;
  json["trainer_state"] = Json::parse(to_json(checkpoint.trainer));
  json["tensors"][std::string(kModelFile)] = tensors_json(*checkpoint.model);
  json["tensors"][std::string(kOptimizerFile)] = tensors_json(*checkpoint.optimizer);
  return json;
}

std::string facts_text(const Checkpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest;
  const TrainerState& trainer = checkpoint.trainer;
  std::string versions;
  for (const auto& [name, version] : manifest.versions) {
    versions += cat(versions.empty() ? "" : ", ", name, " ", version);
  }
  const auto line = [](std::string_view name, const std::string& value) {
    return cat(name, std::string(18 - name.size(), ' '), escaped(value), "\n");
  };
  return cat(
      line("path", checkpoint.path), line("step", cat(manifest.step)),
      line("updates", cat(trainer.updates, ", ", trainer.skipped, " skipped")),
      line("samples seen", cat(trainer.samples_seen)),
      line("tokens seen", cat(trainer.tokens_seen)),
      line("data position", cat("epoch ", trainer.epoch, ", sample ", trainer.samples_in_epoch)),
      line("optimizer", trainer.optimizer),
      line("schedule",
           trainer.schedule_total_steps == 0
               ? cat(trainer.schedule_type, ", no horizon")
               : cat(trainer.schedule_type, " over ", trainer.schedule_total_steps, " steps")),
      line("learning rate", number_text(trainer.last_learning_rate)),
      line("loss", number_text(trainer.last_loss)),
      line("loss scale", trainer.scaler ? number_text(trainer.scaler->scale) : "none"),
      line("world size", cat(manifest.world_size)), line("run id", manifest.run_id),
      line("created (UTC)", manifest.created_utc), line("config digest", manifest.config_digest),
      line("data digest", manifest.data_digest), line("state digest", manifest.state_digest),
      line("versions", versions));
}

}  // namespace

int inspect_command(const CommandOptions& options) {
  const std::string& path = options.paths.front();
  if (is_regular_file(path)) return inspect_file(path, options.is_json);
  const Checkpoint checkpoint = open_checkpoint(single_checkpoint(path));
  if (options.is_json) {
    std::cout << dump_json(checkpoint_json(checkpoint), path);
  } else {
    std::cout << facts_text(checkpoint) << "\n"
              << tensors_text(*checkpoint.model) << "\n"
              << tensors_text(*checkpoint.optimizer);
  }
  return static_cast<int>(ExitCode::kOk);
}

int digest_command(const CommandOptions& options) {
  const Checkpoint checkpoint = open_checkpoint(single_checkpoint(options.paths.front()));
  const Manifest& manifest = checkpoint.manifest;
  Json json;
  json["path"] = escaped(checkpoint.path);
  json["state_digest"] = manifest.state_digest;
  std::string text = cat(manifest.state_digest, "  total\n");
  for (const std::string_view name : state_component_names()) {
    const std::string& digest = manifest.state_components.at(std::string(name));
    json["components"][std::string(name)] = digest;
    text += cat(digest, "  ", name, "\n");
  }
  std::cout << (options.is_json ? dump_json(json, "the digest") : text);
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace assay::checkpoints
