// One function a subcommand of `assay checkpoint`. Internal to checkpoints/.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/command_options.h"
#include "checkpoints/safetensors.h"

namespace assay::checkpoints {

// A checkpoint folder itself, or the one that `latest` of a run folder names. Throws
// CheckpointError.
std::string single_checkpoint(const std::string& path);

// --output as the name of a .safetensors file that does not exist yet. Throws ConfigError.
std::string checked_output_file(const CommandOptions& options, std::string_view command);
// Writes the file whole or not at all. Throws FileError.
WrittenFile write_whole(const std::string& path, const std::vector<TensorView>& tensors,
                        const std::map<std::string, std::string>& metadata);

int list_command(const CommandOptions& options);
int inspect_command(const CommandOptions& options);
int verify_command(const CommandOptions& options);
int digest_command(const CommandOptions& options);
int export_command(const CommandOptions& options);
int import_command(const CommandOptions& options);

}  // namespace assay::checkpoints
