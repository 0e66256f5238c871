#include "checkpoints/checkpoint_command.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/checkpoint_subcommands.h"
#include "checkpoints/json_fields.h"
#include "checkpoints/layout.h"
#include "checkpoints/manifest.h"
#include "checkpoints/reader.h"

namespace assay::checkpoints {
namespace {

struct Subcommand {
  std::string_view name;
  std::string_view summary;
  int (*run)(const CommandOptions& options);
};

constexpr std::array<Subcommand, 6> kSubcommands = {{
    {"list", "Lists the checkpoints of a run with step, size, time and whether they verify.",
     list_command},
    {"inspect",
     "Shows what a checkpoint (or a .safetensors file) holds, with a table of its tensors.",
     inspect_command},
    {"verify", "Reads every byte of a checkpoint, or of all of a run, and names what is damaged.",
     verify_command},
    {"digest", "Prints the state digest of a checkpoint, whole and by component.", digest_command},
    {"export",
     "Writes the model's weights under their published names: one .safetensors file, or with "
     "--format hf a folder that Hugging Face's from_pretrained reads.",
     export_command},
    {"import",
     "Makes weights of torchvision or Hugging Face (a .safetensors file, or a folder with one) a "
     "file to train from with model.init_from.",
     import_command},
}};

std::string overview() {
  std::string text =
      "Usage: assay checkpoint SUBCOMMAND PATH [options]\n\n"
      "PATH is a checkpoint folder or a run folder. No GPU is needed.\n\n";
  for (const Subcommand& subcommand : kSubcommands) {
    text += cat("  ", subcommand.name, std::string(9 - subcommand.name.size(), ' '),
                subcommand.summary, "\n");
  }
  return text + "\n`assay checkpoint SUBCOMMAND --help` lists its options.\n";
}

// A checkpoint folder itself, or all that a run folder holds.
std::vector<std::string> all_checkpoints(const std::string& path) {
  const std::string folder = without_trailing_slashes(path);
  if (!is_directory(folder)) {
    throw CheckpointError(cat(path, path_exists(folder) ? " is not a folder" : " does not exist",
                              ". Fix: give a checkpoint folder or a run folder"));
  }
  if (is_checkpoint_folder(folder)) return {folder};
  std::vector<std::string> paths;
  for (const CheckpointCandidate& candidate : list_candidates(folder))
    paths.push_back(candidate.path);
  // The checkpoint folder of a killed save has a name, but no manifest.
  if (paths.empty() && step_of_name(file_name(folder))) return {folder};
  return paths;
}

struct ListedCheckpoint {
  std::string path;
  int64_t step = -1;
  uint64_t bytes = 0;
  std::string created_utc;
  std::vector<VerifyFinding> findings;
};

ListedCheckpoint examine_for_list(const std::string& path) {
  ListedCheckpoint listed;
  listed.path = path;
  listed.step = step_of_name(file_name(path)).value_or(-1);
  listed.findings = verify_checkpoint(path);
  for (const std::string& name : list_directory(path)) {
    const std::string file = join_path(path, name);
    if (is_regular_file(file)) listed.bytes += file_bytes(file);
  }
  const std::string manifest_path = join_path(path, kManifestFile);
  const bool is_manifest_whole =
      std::none_of(listed.findings.begin(), listed.findings.end(),
                   [](const VerifyFinding& finding) { return finding.file == kManifestFile; });
  if (is_manifest_whole) {
    const Manifest manifest = manifest_from_json(read_file(manifest_path), manifest_path);
    listed.step = manifest.step;
    listed.created_utc = manifest.created_utc;
  }
  return listed;
}

nlohmann::ordered_json findings_json(const std::vector<VerifyFinding>& findings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const VerifyFinding& finding : findings) {
    nlohmann::ordered_json entry;
    entry["file"] = escaped(finding.file);
    entry["problem"] = escaped(finding.problem);
    json.push_back(std::move(entry));
  }
  return json;
}

std::string padded(const std::string& text, size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

const Subcommand* find_subcommand(const std::string& word) {
  for (const Subcommand& subcommand : kSubcommands) {
    if (subcommand.name == word) return &subcommand;
  }
  return nullptr;
}

const Subcommand& require_subcommand(const std::string& word) {
  if (const Subcommand* found = find_subcommand(word)) return *found;
  std::vector<std::string> names;
  for (const Subcommand& subcommand : kSubcommands) names.emplace_back(subcommand.name);
  const auto nearest = nearest_spelling(word, names);
  throw ConfigError(cat("unknown subcommand ", quoted(word), " of assay checkpoint",
                        nearest ? cat("; did you mean ", quoted(*nearest), "?")
                                : cat("; known are ", join(names, ", "))));
}

}  // namespace

std::string single_checkpoint(const std::string& path) {
  const std::string folder = without_trailing_slashes(path);
  if (!is_directory(folder)) {
    throw CheckpointError(cat(path, path_exists(folder) ? " is not a folder" : " does not exist",
                              ". Fix: give a checkpoint folder or a run folder"));
  }
  if (is_checkpoint_folder(folder) || step_of_name(file_name(folder))) return folder;
  const auto latest = read_latest(folder);
  if (latest) return *latest;
  throw CheckpointError(
      cat(folder,
          " is neither a checkpoint (no manifest.json) nor a run with a "
          "checkpoint (no `latest`). Fix: give a checkpoint folder or a run folder"));
}

int list_command(const CommandOptions& options) {
  nlohmann::ordered_json json;
  json["path"] = escaped(options.paths.front());
  json["checkpoints"] = nlohmann::ordered_json::array();
  std::string text = cat(padded("step", 10), padded("bytes", 14), padded("created (UTC)", 26),
                         padded("valid", 7), "path\n");
  for (const std::string& path : all_checkpoints(options.paths.front())) {
    const ListedCheckpoint listed = examine_for_list(path);
    const bool is_valid = listed.findings.empty();
    nlohmann::ordered_json entry;
    entry["step"] = listed.step;
    entry["path"] = escaped(listed.path);
    entry["bytes"] = listed.bytes;
    entry["created_utc"] = listed.created_utc;
    entry["valid"] = is_valid;
    entry["findings"] = findings_json(listed.findings);
    json["checkpoints"].push_back(std::move(entry));
    text += cat(padded(listed.step < 0 ? "?" : cat(listed.step), 10), padded(cat(listed.bytes), 14),
                padded(listed.created_utc.empty() ? "?" : listed.created_utc, 26),
                padded(is_valid ? "yes" : "NO", 7), escaped(listed.path), "\n");
    if (!is_valid) text += cat("    ", escaped(findings_text(listed.findings)), "\n");
  }
  if (json["checkpoints"].empty())
    text = cat("no checkpoints in ", escaped(options.paths.front()), "\n");
  std::cout << (options.is_json ? dump_json(json, "the list") : text);
  return static_cast<int>(ExitCode::kOk);
}

int verify_command(const CommandOptions& options) {
  const std::vector<std::string> paths = all_checkpoints(options.paths.front());
  if (paths.empty()) {
    throw CheckpointError(cat("no checkpoints in ", options.paths.front(),
                              ". Fix: give a checkpoint folder or a run folder"));
  }
  nlohmann::ordered_json json;
  json["checkpoints"] = nlohmann::ordered_json::array();
  std::string text;
  bool is_all_valid = true;
  for (const std::string& path : paths) {
    const std::vector<VerifyFinding> findings = verify_checkpoint(path);
    is_all_valid = is_all_valid && findings.empty();
    nlohmann::ordered_json entry;
    entry["path"] = escaped(path);
    entry["valid"] = findings.empty();
    entry["findings"] = findings_json(findings);
    json["checkpoints"].push_back(std::move(entry));
    text += cat(findings.empty() ? "valid    " : "DAMAGED  ", escaped(path), "\n");
    for (const VerifyFinding& finding : findings) {
      text += cat("    ", escaped(findings_text({finding})), "\n");
    }
  }
  json["valid"] = is_all_valid;
  std::cout << (options.is_json ? dump_json(json, "the verdict") : text);
  return static_cast<int>(is_all_valid ? ExitCode::kOk : ExitCode::kCheckpoint);
}

int run_checkpoint_command(std::span<const std::string> words) {
  if (words.empty()) {
    throw ConfigError(
        "assay checkpoint needs a subcommand: list, inspect, verify, digest, export or "
        "import. "
        "Fix: see assay checkpoint --help");
  }
  if (words.front() == "--help" || words.front() == "-h") {
    std::cout << overview();
    return static_cast<int>(ExitCode::kOk);
  }
  const Subcommand& subcommand = require_subcommand(words.front());
  const bool is_export = subcommand.name == "export";
  const bool is_import = subcommand.name == "import";
  const CommandOptions options = parse_command(
      {.name = cat("assay checkpoint ", subcommand.name),
       .summary = std::string(subcommand.summary),
       .path_names = is_export   ? "CHECKPOINT"
                     : is_import ? "FILE.safetensors|FOLDER"
                                 : "PATH",
       .path_count = 1,
       .has_output = is_export || is_import,
       .formats = is_export ? std::vector<std::string>{"safetensors", "torchvision", "hf"}
                            : std::vector<std::string>{}},
      words.subspan(1));
  if (options.is_help) {
    std::cout << options.help;
    return static_cast<int>(ExitCode::kOk);
  }
  try {
    return subcommand.run(options);
  } catch (const FileError& error) {
    throw CheckpointError(
        cat(error.what(), ". Fix: give a readable checkpoint folder or run folder",
            is_export || is_import ? ", and an --output in a folder that exists" : ""));
  }
}

}  // namespace assay::checkpoints
