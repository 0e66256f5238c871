#include "checkpoints/reader.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"

namespace assay::checkpoints {
namespace {

// Collects what is wrong while it reads; the checkpoint is usable only if nothing is.
struct Examination {
  Checkpoint checkpoint;
  std::vector<VerifyFinding> findings;
};

bool is_plain_file(const std::string& path) {
  std::error_code ignored;  // a file that cannot be looked at is no plain file
  return std::filesystem::symlink_status(path, ignored).type() ==
         std::filesystem::file_type::regular;
}

// The folder must hold the manifest's files and nothing else. True if all of them are there.
bool check_folder(Examination& examination) {
  const std::string& folder = examination.checkpoint.path;
  const std::vector<WrittenFile>& files = examination.checkpoint.manifest.files;
  std::set<std::string> expected = {std::string(kManifestFile)};
  for (const WrittenFile& file : files) expected.insert(file.name);
  const std::vector<std::string> names = list_directory(folder);
  std::vector<VerifyFinding> missing;
  for (const std::string& name : expected) {
    const bool is_there = std::find(names.begin(), names.end(), name) != names.end();
    if (!is_there) {
      missing.push_back(
          {name, cat("is missing; the folder has ", names.size(),
                     " files, its manifest and what that names are ", expected.size())});
    } else if (!is_plain_file(join_path(folder, name))) {
      missing.push_back({name, "is a link, folder or device, must be a file of its own"});
    }
  }
  examination.findings.insert(examination.findings.end(), missing.begin(), missing.end());
  for (const std::string& name : names) {
    if (expected.count(name) > 0) continue;
    examination.findings.push_back({name, "is not in the manifest; move it out of the folder"});
  }
  return missing.empty();
}

// Every checkpoint has these; a manifest without them is not of this format.
bool check_file_list(Examination& examination) {
  const Manifest& manifest = examination.checkpoint.manifest;
  std::set<std::string> required = {std::string(kModelFile), std::string(kOptimizerFile),
                                    std::string(kTrainerStateFile)};
  // A manifest of a hostile world size must not make this loop long: it has that many files.
  const int64_t ranks =
      std::min<int64_t>(manifest.world_size, static_cast<int64_t>(manifest.files.size()) + 1);
  for (int64_t rank = 0; rank < ranks; ++rank) required.insert(rank_file_name(rank));
  std::set<std::string> named;
  for (const WrittenFile& file : manifest.files) named.insert(file.name);
  if (named == required) return true;
  std::vector<std::string> differing;
  std::set_symmetric_difference(required.begin(), required.end(), named.begin(), named.end(),
                                std::back_inserter(differing));
  examination.findings.push_back(
      {std::string(kManifestFile),
       cat("does not name the files of a checkpoint of ", manifest.world_size,
           " ranks: ", join(differing, ", "), " too many or too few")});
  return false;
}

bool check_bytes(Examination& examination, const WrittenFile& expected, const void* bytes,
                 uint64_t count) {
  if (count != expected.bytes) {
    examination.findings.push_back(
        {expected.name, cat("is ", count, " bytes, its manifest says ", expected.bytes)});
    return false;
  }
  const std::string found = xxh3_hex(bytes, count);
  if (found == expected.xxh3) return true;
  examination.findings.push_back(
      {expected.name, cat("has checksum ", found, ", its manifest says ", expected.xxh3)});
  return false;
}

void check_tensors(Examination& examination, const WrittenFile& expected,
                   const SafetensorsFile& file) {
  const auto report = [&](std::string problem) {
    examination.findings.push_back({expected.name, std::move(problem)});
  };
  std::map<std::string, const TensorView*> found;
  for (const TensorView& tensor : file.tensors()) found[tensor.name] = &tensor;
  for (const TensorChecksum& checksum : expected.tensors) {
    const auto entry = found.find(checksum.name);
    if (entry == found.end()) {
      report(cat("lacks tensor ", quoted(checksum.name)));
      continue;
    }
    const TensorView& tensor = *entry->second;
    found.erase(entry);
    if (tensor.dtype != checksum.dtype || tensor.shape != checksum.shape) {
      report(
          cat("has tensor ", quoted(tensor.name), " of another dtype or shape than its manifest"));
      continue;
    }
    const std::string hash = xxh3_hex(tensor.bytes, tensor.byte_count);
    if (hash == checksum.xxh3) continue;
    report(cat("tensor ", quoted(tensor.name), " has checksum ", hash, ", its manifest says ",
               checksum.xxh3));
  }
  for (const auto& [name, unused] : found) {
    report(cat("has tensor ", quoted(name), ", which its manifest does not name"));
  }
}

std::unique_ptr<SafetensorsFile> read_tensors(Examination& examination,
                                              const WrittenFile& expected) {
  const std::string path = join_path(examination.checkpoint.path, expected.name);
  const uint64_t bytes = file_bytes(path);
  if (bytes != expected.bytes) {
    examination.findings.push_back(
        {expected.name, cat("is ", bytes, " bytes, its manifest says ", expected.bytes)});
    return nullptr;
  }
  try {
    auto file = std::make_unique<SafetensorsFile>(path);
    check_bytes(examination, expected, file->data(), file->bytes());
    check_tensors(examination, expected, *file);
    return file;
  } catch (const CheckpointError& error) {
    examination.findings.push_back({expected.name, error.what()});
    return nullptr;
  }
}

void read_trainer_state(Examination& examination, const std::string& text) {
  Checkpoint& checkpoint = examination.checkpoint;
  const std::string name(kTrainerStateFile);
  checkpoint.trainer = trainer_state_from_json(text, join_path(checkpoint.path, name));
  if (checkpoint.trainer.step != checkpoint.manifest.step) {
    examination.findings.push_back({name, cat("is of step ", checkpoint.trainer.step,
                                              ", its manifest says ", checkpoint.manifest.step)});
  }
  if (checkpoint.trainer.run_id != checkpoint.manifest.run_id) {
    examination.findings.push_back(
        {name, cat("is of run ", quoted(checkpoint.trainer.run_id), ", its manifest says ",
                   quoted(checkpoint.manifest.run_id))});
  }
}

void read_rank_state(Examination& examination, const std::string& name, const std::string& text) {
  Checkpoint& checkpoint = examination.checkpoint;
  RankState state = rank_state_from_json(text, join_path(checkpoint.path, name));
  if (rank_file_name(state.rank) != name) {
    examination.findings.push_back({name, cat("is of rank ", state.rank)});
  }
  checkpoint.ranks.push_back(std::move(state));
}

void read_state_file(Examination& examination, const WrittenFile& expected) {
  try {
    const std::string text = read_file(join_path(examination.checkpoint.path, expected.name));
    if (!check_bytes(examination, expected, text.data(), text.size())) return;
    if (expected.name == kTrainerStateFile) {
      read_trainer_state(examination, text);
    } else {
      read_rank_state(examination, expected.name, text);
    }
  } catch (const CheckpointError& error) {
    examination.findings.push_back({expected.name, error.what()});
  }
}

void check_state_digest(Examination& examination) {
  const Checkpoint& checkpoint = examination.checkpoint;
  const StateDigest digest = state_digest({.model = checkpoint.model->tensors(),
                                           .optimizer = checkpoint.optimizer->tensors(),
                                           .trainer = checkpoint.trainer,
                                           .ranks = checkpoint.ranks});
  for (const auto& [component, found] : digest.components) {
    const std::string& expected = checkpoint.manifest.state_components.at(component);
    if (found == expected) continue;
    examination.findings.push_back(
        {"", cat("state digest of ", component, " is ", found, ", its manifest says ", expected)});
  }
}

bool read_manifest(Examination& examination) {
  Checkpoint& checkpoint = examination.checkpoint;
  const std::string name(kManifestFile);
  const std::string path = join_path(checkpoint.path, name);
  if (!is_directory(checkpoint.path)) {
    examination.findings.push_back(
        {"", path_exists(checkpoint.path) ? "is not a folder" : "does not exist"});
    return false;
  }
  if (!is_plain_file(path)) {
    examination.findings.push_back(
        {name, path_exists(path) ? "is a link or folder, must be a file of its own"
                                 : "is missing: the folder is not a finished checkpoint"});
    return false;
  }
  try {
    checkpoint.manifest = manifest_from_json(read_file(path), path);
  } catch (const CheckpointError& error) {
    examination.findings.push_back({name, error.what()});
    return false;
  }
  return true;
}

Examination examine(const std::string& path) {
  Examination examination;
  Checkpoint& checkpoint = examination.checkpoint;
  checkpoint.path = without_trailing_slashes(path);
  try {
    if (!read_manifest(examination) || !check_file_list(examination)) return examination;
    if (!check_folder(examination)) return examination;
    for (const WrittenFile& file : checkpoint.manifest.files) {
      if (file.name == kModelFile) {
        checkpoint.model = read_tensors(examination, file);
      } else if (file.name == kOptimizerFile) {
        checkpoint.optimizer = read_tensors(examination, file);
      } else {
        read_state_file(examination, file);
      }
    }
  } catch (const FileError& error) {
    examination.findings.push_back({"", error.what()});
  }
  std::sort(checkpoint.ranks.begin(), checkpoint.ranks.end(),
            [](const RankState& left, const RankState& right) { return left.rank < right.rank; });
  if (examination.findings.empty()) check_state_digest(examination);
  return examination;
}

}  // namespace

std::string findings_text(const std::vector<VerifyFinding>& findings) {
  if (findings.empty()) return "nothing is wrong";
  const VerifyFinding& first = findings.front();
  // A problem that came out of a file's own reader names the file already.
  const bool is_named = first.problem.find(first.file) != std::string::npos;
  std::string text = is_named ? first.problem : cat(first.file, " ", first.problem);
  if (findings.size() > 1) text += cat(" (and ", findings.size() - 1, " more)");
  return text;
}

std::optional<std::string> newest_valid_checkpoint(const std::string& run_dir,
                                                   const std::string& except) {
  if (!is_directory(run_dir)) return std::nullopt;
  std::vector<CheckpointEntry> entries = list_checkpoints(run_dir);
  std::reverse(entries.begin(), entries.end());
  for (const CheckpointEntry& entry : entries) {
    if (entry.path != except && examine(entry.path).findings.empty()) return entry.path;
  }
  return std::nullopt;
}

Checkpoint open_checkpoint(const std::string& path) {
  Examination examination = examine(path);
  if (examination.findings.empty()) return std::move(examination.checkpoint);
  const std::string& folder = examination.checkpoint.path;
  const auto other = newest_valid_checkpoint(parent_path(folder), folder);
  throw CheckpointError(
      cat(file_name(folder), ": ", findings_text(examination.findings), " (", folder, "). Fix: ",
          other ? cat("resume from ", file_name(*other), ", the newest that verifies")
                : "bring back a good copy; no other checkpoint beside it verifies"));
}

std::vector<VerifyFinding> verify_checkpoint(const std::string& path) {
  return examine(path).findings;
}

}  // namespace assay::checkpoints
