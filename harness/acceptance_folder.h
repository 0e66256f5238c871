// The output folder of an acceptance: made or taken over, locked, and written so that it is
// consistent at every moment.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/files.h"
#include "harness/report/report.h"

namespace assay::harness {

// Holds the folder's lock while it lives. Main thread only.
class AcceptanceFolder {
 public:
  // `path` absolute. Creates the folder, or takes a previous acceptance of ours if `is_rerun`.
  // Throws ConfigError: in use by somebody else, holds foreign files, or an acceptance but not
  // `is_rerun`; CouldNotRunError if it cannot be made or written.
  AcceptanceFolder(const std::string& path, bool is_rerun);
  AcceptanceFolder(const AcceptanceFolder&) = delete;
  AcceptanceFolder& operator=(const AcceptanceFolder&) = delete;

  const std::string& path() const { return path_; }
  const std::optional<Report>& previous() const { return previous_; }

  // Removes what an earlier run of that scenario left in the evidence.
  void clear_scenario(const std::string& scenario) const;
  // A file below evidence/.
  void add_evidence(const std::string& name, const std::string& text) const;
  // report.json alone, and no SHA256SUMS: what stands while the acceptance goes on.
  void write_progress(const Report& report) const;
  // All reports, then SHA256SUMS.
  void finish(const Report& report, Language language, bool keeps_checkpoints) const;

 private:
  std::string path_;
  std::unique_ptr<FolderLock> lock_;
  std::optional<Report> previous_;
};

}  // namespace assay::harness
