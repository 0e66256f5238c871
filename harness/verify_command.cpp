#include "harness/verify_command.h"

#include <cstdio>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "harness/checksums.h"
#include "harness/command_options.h"

namespace assay::harness {
namespace {

constexpr std::string_view kUsage = "assay verify DIR";
constexpr std::string_view kSentence =
    "Reads every file of an acceptance folder and compares it with SHA256SUMS. Works on a copy.\n"
    "Exit code 0: all files are there and unchanged; 6: some are missing, changed or extra.";

std::string_view kind_word(ChecksumFinding::Kind kind) {
  switch (kind) {
    case ChecksumFinding::Kind::kMissing:
      return "missing";
    case ChecksumFinding::Kind::kChanged:
      return "changed";
    case ChecksumFinding::Kind::kExtra:
      break;
  }
  return "extra";
}

}  // namespace

int run_verify_command(std::span<const std::string> words) {
  const CommandWords parsed = parse_command_words({}, words, 1);
  if (parsed.is_help) {
    std::fputs(command_help(kUsage, kSentence, {}).c_str(), stdout);
    return 0;
  }
  if (parsed.positionals.empty()) throw ConfigError(cat("no folder is given. Usage: ", kUsage));
  const std::string& folder = parsed.positionals.front();
  if (!is_directory(folder)) {
    throw ConfigError(cat(assay::quoted(folder),
                          " is not a folder. Fix: give the folder that "
                          "assay accept named at its end"));
  }
  const ChecksumResult result = verify_checksums(folder);
  for (const ChecksumFinding& finding : result.findings) {
    std::fputs(
        cat(kind_word(finding.kind), ": ", assay::quoted(finding.path), " ", finding.detail, "\n")
            .c_str(),
        stdout);
  }
  std::fputs(cat(folder, ": ", result.checked_files, " files (", bytes_text(result.checked_bytes),
                 ") read, ",
                 result.findings.empty() ? std::string("all as SHA256SUMS says")
                                         : cat(result.findings.size(), " findings"),
                 "\n")
                 .c_str(),
             stdout);
  return static_cast<int>(result.findings.empty() ? ExitCode::kOk : ExitCode::kCheckFailed);
}

}  // namespace assay::harness
