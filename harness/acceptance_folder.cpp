#include "harness/acceptance_folder.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "harness/checksums.h"
#include "harness/run_folder.h"

namespace assay::harness {
namespace {

constexpr std::string_view kReportFile = "report.json";
constexpr std::string_view kEvidence = "evidence";
constexpr std::string_view kSite = "report";

std::unique_ptr<FolderLock> lock_folder(const std::string& path) {
  try {
    create_directories(path);
    std::string holder;
    auto lock = FolderLock::try_lock(join_path(path, kFolderLockFile), &holder);
    if (lock) return lock;
    throw ConfigError(cat("the folder ", assay::quoted(path), " is in use by ", holder,
                          ". Fix: wait for it, or give another --output"));
  } catch (const FileError& error) {
    throw CouldNotRunError(cat("the output folder cannot be used: ", error.what(),
                               ". Fix: another --output, on a disk that can be written"));
  }
}

std::optional<Report> read_previous(const std::string& path, bool is_rerun) {
  std::vector<std::string> names = list_directory(path);
  std::erase(names, kFolderLockFile);
  if (names.empty()) return std::nullopt;
  if (std::find(names.begin(), names.end(), kReportFile) == names.end()) {
    throw ConfigError(cat("--output ", assay::quoted(path), " holds ", names.size(),
                          " files or folders that are no acceptance, e.g. ",
                          assay::quoted(names.front()), ". Fix: give a new or empty folder"));
  }
  const std::string file = join_path(path, kReportFile);
  Report report;
  try {
    report = report_from_json(read_file(file), file);
  } catch (const DataError& error) {
    throw ConfigError(cat("--output ", assay::quoted(path),
                          " is not empty, and its report is none "
                          "of ours: ",
                          error.what()));
  }
  if (!is_rerun) {
    throw ConfigError(cat("--output ", assay::quoted(path), " holds an acceptance of ",
                          report.started_utc,
                          ". Fix: give another folder, or --scenarios a,b to "
                          "run these again into it"));
  }
  return report;
}

}  // namespace

AcceptanceFolder::AcceptanceFolder(const std::string& path, bool is_rerun)
    : path_(path), lock_(lock_folder(path)), previous_(read_previous(path, is_rerun)) {}

void AcceptanceFolder::clear_scenario(const std::string& scenario) const {
  remove_tree(join_path(join_path(path_, kEvidence), scenario));
}

void AcceptanceFolder::add_evidence(const std::string& name, const std::string& text) const {
  const std::string folder = join_path(path_, kEvidence);
  create_directories(folder);
  write_file_durably(join_path(folder, name), text, "evidence");
}

void AcceptanceFolder::write_progress(const Report& report) const {
  remove_file(join_path(path_, kChecksumFile));
  write_file_durably(join_path(path_, kReportFile), report_to_json(report), kSite);
}

void AcceptanceFolder::finish(const Report& report, Language language,
                              bool keeps_checkpoints) const {
  const std::string evidence = join_path(path_, kEvidence);
  if (!keeps_checkpoints) drop_weights(evidence);
  write_file_durably(join_path(path_, kReportFile), report_to_json(report), kSite);
  write_file_durably(join_path(path_, "report.md"), report_to_markdown(report, language), kSite);
  write_file_durably(join_path(path_, "report.html"), report_to_html(report, language, path_),
                     kSite);
  write_file_durably(join_path(path_, "junit.xml"), report_to_junit(report), kSite);
  write_checksums(path_);
}

}  // namespace assay::harness
