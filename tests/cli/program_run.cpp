#include "tests/cli/program_run.h"

#include <stdexcept>

#include "base/files.h"
#include "base/text.h"
#include "platform/child.h"

namespace assay::cli {

ProgramRun run_assay(const std::string& line, const std::string& before) {
  const TemporaryFolder folder("assay-cli");
  const std::string errors = join_path(folder.path(), "errors");
  const std::string command = cat(before, "'", ASSAY_PROGRAM, "' ", line, " 2>'", errors, "'");
  const platform::ChildResult result = platform::run_and_capture({"/bin/sh", "-c", command}, 120);
  if (!result.start_error.empty() || result.is_timed_out) {
    throw std::runtime_error(cat("cannot run ", command, ": ", result.start_error));
  }
  return {result.exit_code, result.output, read_file(errors)};
}

}  // namespace assay::cli
