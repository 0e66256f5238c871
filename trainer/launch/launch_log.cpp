#include "trainer/launch/launch_log.h"

#include <cstdio>

#include "base/text.h"

namespace assay::launch {
namespace {

// One write for all, so that lines of ranks do not come in between.
void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

void LaunchLog::info(const std::string& text) const {
  if (level_ <= LogLevel::kInfo) print(cat("assay launch: ", escaped(text), "\n"));
}

void LaunchLog::warning(const std::string& text) const {
  if (level_ <= LogLevel::kWarning) print(cat("assay launch: warning: ", escaped(text), "\n"));
}

void LaunchLog::block(const std::string& lines) const { print(lines); }

}  // namespace assay::launch
