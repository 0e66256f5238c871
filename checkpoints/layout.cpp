#include "checkpoints/layout.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/manifest.h"

namespace assay::checkpoints {
namespace {

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kTemporaryMark = ".tmp-";
constexpr size_t kRandomDigits = 16;
constexpr size_t kRankDigits = 5;
constexpr uint64_t kLatestLimit = 4096;

bool all_of_set(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

bool is_link(const std::string& path) {
  std::error_code ignored;  // a path that cannot be looked at is no link
  return std::filesystem::is_symlink(path, ignored);
}

bool same_place(const std::string& left, const std::string& right) {
  if (without_trailing_slashes(left) == without_trailing_slashes(right)) return true;
  std::error_code failed;  // set if one of them does not exist: then they are not the same
  return std::filesystem::equivalent(left, right, failed) && !failed;
}

CheckpointCandidate read_candidate(const std::string& path) {
  CheckpointCandidate candidate;
  candidate.path = path;
  candidate.step = step_of_name(file_name(path)).value_or(-1);
  const std::string manifest_path = join_path(path, kManifestFile);
  if (!is_regular_file(manifest_path) || is_link(manifest_path)) {
    candidate.problem = "has no manifest.json: not a finished checkpoint of this program";
    return candidate;
  }
  try {
    const Manifest manifest = manifest_from_json(read_file(manifest_path), manifest_path);
    candidate.step = manifest.step;
    candidate.run_id = manifest.run_id;
  } catch (const CheckpointError& error) {
    candidate.problem = error.what();
  } catch (const FileError& error) {
    candidate.problem = error.what();
  }
  return candidate;
}

bool holds_only_checkpoint_files(const std::string& folder) {
  const std::vector<std::string> names = list_directory(folder);
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const std::string path = join_path(folder, name);
    return is_checkpoint_file_name(name) && !is_link(path) && is_regular_file(path);
  });
}

// A killed write_file_durably of `latest` leaves a file of this form.
bool is_temporary_latest(std::string_view name) {
  const std::string prefix = cat(".", kLatestFile, kTemporaryMark);
  return name.starts_with(prefix) && all_of_set(name.substr(prefix.size()), "0123456789abcdef");
}

}  // namespace

std::string checkpoint_name(int64_t step) { return cat(kPrefix, step); }

std::optional<int64_t> step_of_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  if (!all_of_set(digits, "0123456789")) return std::nullopt;
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  return parse_int64(digits);
}

std::string rank_file_name(int64_t rank) {
  std::string digits = cat(rank);
  if (digits.size() < kRankDigits) digits.insert(0, kRankDigits - digits.size(), '0');
  return cat("rank_", digits, ".json");
}

bool is_temporary_name(std::string_view name) {
  if (!name.starts_with(".")) return false;
  const size_t mark = name.find(kTemporaryMark);
  if (mark == std::string_view::npos || !step_of_name(name.substr(1, mark - 1))) return false;
  const std::string_view random = name.substr(mark + kTemporaryMark.size());
  return random.size() == kRandomDigits && all_of_set(random, "0123456789abcdef");
}

std::string temporary_name(int64_t step) {
  std::random_device device;  // must differ between processes; no result depends on it
  std::string random;
  while (random.size() < kRandomDigits) random.push_back("0123456789abcdef"[device() % 16]);
  return cat(".", checkpoint_name(step), kTemporaryMark, random);
}

bool is_checkpoint_file_name(std::string_view name) {
  if (name == kModelFile || name == kOptimizerFile) return true;
  if (name == kTrainerStateFile || name == kManifestFile) return true;
  if (!name.starts_with("rank_") || !name.ends_with(".json")) return false;
  const std::string_view digits = name.substr(5, name.size() - 10);
  const std::optional<int64_t> rank = parse_int64(digits);
  return rank && *rank >= 0 && rank_file_name(*rank) == name;
}

std::string file_name_problem(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name == "." || name == "..") return "leads out of the folder";
  if (name.find('/') != std::string_view::npos) return "leads out of the folder";
  if (!is_valid_utf8(name)) return "is not UTF-8";
  for (const char letter : name) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20 || code == 0x7f) return "holds a control character";
  }
  return "";
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool is_checkpoint_folder(const std::string& path) {
  return is_directory(path) && is_regular_file(join_path(path, kManifestFile));
}

std::vector<CheckpointCandidate> list_candidates(const std::string& run_dir) {
  std::vector<CheckpointCandidate> candidates;
  for (const std::string& name : list_directory(run_dir)) {
    const std::string path = join_path(run_dir, name);
    if (is_temporary_name(name) || is_link(path) || !is_directory(path)) continue;
    if (!step_of_name(name) && !path_exists(join_path(path, kManifestFile))) continue;
    candidates.push_back(read_candidate(path));
  }
  std::sort(candidates.begin(), candidates.end(), [](const auto& left, const auto& right) {
    return std::pair(left.step, left.path) < std::pair(right.step, right.path);
  });
  return candidates;
}

std::vector<CheckpointEntry> list_checkpoints(const std::string& run_dir) {
  std::vector<CheckpointEntry> entries;
  for (const CheckpointCandidate& candidate : list_candidates(run_dir)) {
    if (!candidate.problem.empty()) continue;
    entries.push_back({.path = candidate.path, .step = candidate.step});
  }
  return entries;
}

std::optional<std::string> read_latest(const std::string& run_dir) {
  const std::string path = join_path(run_dir, kLatestFile);
  if (is_link(path) || is_directory(path)) {
    throw CheckpointError(cat(path,
                              " is a link or a folder, must be a file with the name of a "
                              "checkpoint folder beside it. Fix: remove it and resume from PATH"));
  }
  if (!path_exists(path)) return std::nullopt;
  std::string name;
  try {
    name = read_file(path, kLatestLimit);
  } catch (const FileError& error) {
    throw CheckpointError(cat(error.what(), ". Fix: resume from PATH"));
  }
  if (name.ends_with('\n')) name.pop_back();
  const std::string problem = file_name_problem(name);
  if (!problem.empty()) {
    throw CheckpointError(cat(path, " names ", quoted(name), ", which ", problem,
                              "; it must name a folder beside it. Fix: resume from PATH"));
  }
  const std::string target = join_path(run_dir, name);
  if (is_link(target) || !is_directory(target)) {
    throw CheckpointError(cat(path, " names ", quoted(name), ", which is ",
                              is_link(target) ? "a link" : "not a folder", " in ", run_dir,
                              ". Fix: give it back that name, or resume from PATH"));
  }
  return target;
}

std::vector<std::string> remove_stale_temporaries(const std::string& run_dir) {
  std::vector<std::string> removed;
  for (const std::string& name : list_directory(run_dir)) {
    const std::string path = join_path(run_dir, name);
    if (is_link(path)) continue;
    if (is_temporary_name(name) && is_directory(path) && holds_only_checkpoint_files(path)) {
      remove_tree(path);
      removed.push_back(path);
    } else if (is_temporary_latest(name) && is_regular_file(path)) {
      remove_file(path);
      removed.push_back(path);
    }
  }
  return removed;
}

std::vector<std::string> checkpoints_to_delete(const std::vector<CheckpointEntry>& entries,
                                               int64_t limit,
                                               const std::vector<std::string>& keep_paths) {
  std::vector<std::string> doomed;
  if (limit <= 0) return doomed;
  std::vector<CheckpointEntry> newest_first = entries;
  std::stable_sort(newest_first.begin(), newest_first.end(),
                   [](const auto& left, const auto& right) { return left.step > right.step; });
  for (size_t index = static_cast<size_t>(limit); index < newest_first.size(); ++index) {
    const std::string& path = newest_first[index].path;
    const bool is_kept =
        std::any_of(keep_paths.begin(), keep_paths.end(),
                    [&](const std::string& kept) { return same_place(kept, path); });
    if (!is_kept) doomed.push_back(path);
  }
  return doomed;
}

}  // namespace assay::checkpoints
