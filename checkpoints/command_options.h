// The words after `assay checkpoint` and `assay diff`. Internal to checkpoints/.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace assay::checkpoints {

struct CommandOptions {
  std::vector<std::string> paths;
  std::string output;  // --output, where the command has it
  std::string format;  // --format, where the command has it; empty: left out
  bool is_json = false;
  bool is_help = false;
  std::string help;  // the whole help text
};

struct CommandDescription {
  std::string name;        // "assay checkpoint list"
  std::string summary;     // one sentence or a few lines
  std::string path_names;  // "PATH", "LEFT RIGHT"
  size_t path_count = 1;
  bool has_output = false;
  std::vector<std::string> formats = {};  // of --format; empty: no such option
};

// Throws ConfigError for unknown options (with the nearest spelling) and a wrong number of paths.
CommandOptions parse_command(const CommandDescription& command, std::span<const std::string> words);

}  // namespace assay::checkpoints
