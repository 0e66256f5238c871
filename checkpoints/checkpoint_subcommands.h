// One function a subcommand of `assay checkpoint`. Internal to checkpoints/.
#pragma once

#include <string>

#include "checkpoints/command_options.h"

namespace assay::checkpoints {

// A checkpoint folder itself, or the one that `latest` of a run folder names. Throws
// CheckpointError.
std::string single_checkpoint(const std::string& path);

int list_command(const CommandOptions& options);
int inspect_command(const CommandOptions& options);
int verify_command(const CommandOptions& options);
int digest_command(const CommandOptions& options);
int export_command(const CommandOptions& options);

}  // namespace assay::checkpoints
