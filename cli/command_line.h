// The commands of the `assay` program: which there are, and how a command line finds its own.
#pragma once

#include <span>
#include <string>

namespace assay::cli {

// `words` are the command line without the program's name. Returns the exit code. Throws
// ConfigError for a command that does not exist or is not in this release.
int run_command_line(std::span<const std::string> words);

}  // namespace assay::cli
