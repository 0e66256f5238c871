#include "harness/run_folder.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"

namespace assay::harness {
namespace {

std::string read_run_file(const std::string& path) {
  try {
    return read_file(path);
  } catch (const FileError& error) {
    throw DataError(cat(error.what(),
                        ". Expected: a file that the trainer writes into its run "
                        "folder. Fix: read log.txt beside the run"));
  }
}

template <class Value>
Value field(const nlohmann::json& json, const char* key, const std::string& path) {
  const auto found = json.find(key);
  if (found == json.end()) throw DataError(cat(path, " has no key \"", key, "\""));
  try {
    return found->get<Value>();
  } catch (const nlohmann::json::exception&) {
    throw DataError(cat(path, ": \"", key, "\" is ", found->dump(), ", of an unexpected type"));
  }
}

std::optional<IdsLine> parse_ids_line(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("step") || !json.contains("epoch") ||
      !json.contains("ids") || !json["ids"].is_array()) {
    return std::nullopt;
  }
  try {
    return IdsLine{json["step"].get<int64_t>(), json["epoch"].get<int64_t>(),
                   json["ids"].get<std::vector<int64_t>>()};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

void drop_weights_below(const std::string& folder, uint64_t& freed) {
  const std::vector<std::string> names = list_directory(folder);
  const bool is_checkpoint =
      std::find(names.begin(), names.end(), checkpoints::kManifestFile) != names.end();
  for (const std::string& name : names) {
    const std::string path = join_path(folder, name);
    if (is_directory(path)) {
      if (!is_checkpoint) drop_weights_below(path, freed);
    } else if (is_checkpoint ? name != checkpoints::kManifestFile
                             : name.ends_with(".safetensors") || name == checkpoints::kLockFile) {
      freed += file_bytes(path);
      remove_file(path);
    }
  }
}

}  // namespace

RunOutcome read_outcome(const std::string& run_dir) {
  const std::string path = join_path(run_dir, "result.json");
  const auto json = nlohmann::json::parse(read_run_file(path), nullptr, false);
  if (!json.is_object()) throw DataError(cat(path, " is not a JSON object"));
  RunOutcome outcome;
  outcome.status = field<std::string>(json, "status", path);
  outcome.final_step = field<int64_t>(json, "final_step", path);
  outcome.state_digest = field<std::string>(json, "state_digest", path);
  outcome.stop_reason = field<std::string>(json, "stop_reason", path);
  outcome.exit_code = field<int>(json, "exit_code", path);
  outcome.wall_seconds = field<double>(json, "wall_seconds", path);
  outcome.startup_seconds = field<double>(json, "startup_seconds", path);
  return outcome;
}

std::vector<IdsLine> read_ids(const std::string& run_dir, int64_t rank) {
  const std::string path = join_path(run_dir, cat("ids-rank", rank, ".jsonl"));
  const std::string text = read_run_file(path);
  std::vector<IdsLine> lines;
  size_t start = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    std::optional<IdsLine> line = parse_ids_line(text.substr(start, end - start));
    if (!line) {
      throw DataError(cat(path, " line ", lines.size() + 1, " is ",
                          assay::quoted(text.substr(start, std::min<size_t>(end - start, 80))),
                          ", expected {\"step\":..,\"epoch\":..,\"ids\":[..]}"));
    }
    lines.push_back(std::move(*line));
    start = end + 1;
  }
  return lines;
}

uint64_t checkpoint_bytes(const std::string& checkpoint) {
  uint64_t bytes = 0;
  for (const std::string& name : list_directory(checkpoint)) {
    bytes += file_bytes(join_path(checkpoint, name));
  }
  return bytes;
}

uint64_t checkpoint_files(const std::string& checkpoint) {
  return list_directory(checkpoint).size();
}

uint64_t drop_weights(const std::string& run_dir) {
  uint64_t freed = 0;
  if (is_directory(run_dir)) drop_weights_below(run_dir, freed);
  return freed;
}

}  // namespace assay::harness
