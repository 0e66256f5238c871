#include "checkpoints/command_options.h"

#include <algorithm>

#include <cxxopts.hpp>

#include "base/error.h"
#include "base/text.h"

namespace assay::checkpoints {
namespace {

// Option names with `-` and `_` alike; values and paths stay as they are.
std::string with_hyphens(const std::string& word) {
  if (!word.starts_with("--")) return word;
  std::string changed = word;
  const auto name_end =
      changed.begin() + static_cast<std::ptrdiff_t>(std::min(changed.find('='), changed.size()));
  std::replace(changed.begin(), name_end, '_', '-');
  return changed;
}

void refuse_unknown_options(const CommandDescription& command,
                            const std::vector<std::string>& words) {
  std::vector<std::string> known = {"--json", "--help"};
  if (command.has_output) known.emplace_back("--output");
  if (!command.formats.empty()) known.emplace_back("--format");
  for (const std::string& word : words) {
    if (word == "--") return;
    if (!word.starts_with("-") || word == "-" || word == "-h") continue;
    const std::string name = word.substr(0, word.find('='));
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto nearest = nearest_spelling(name, known);
    throw ConfigError(cat("unknown option ", quoted(name), " of ", command.name,
                          nearest ? cat("; did you mean ", quoted(*nearest), "?")
                                  : cat("; known are ", join(known, ", "))));
  }
}

void check_format(const CommandDescription& command, const std::string& format) {
  if (std::find(command.formats.begin(), command.formats.end(), format) != command.formats.end()) {
    return;
  }
  const auto nearest = nearest_spelling(format, command.formats);
  throw ConfigError(cat("--format is ", quoted(format), ", must be one of ",
                        join(command.formats, ", "), " (", command.name, "). Fix: --format ",
                        nearest ? *nearest : command.formats.front()));
}

cxxopts::Options declare(const CommandDescription& command) {
  cxxopts::Options options(command.name, command.summary + "\n");
  options.custom_help(cat(command.path_names, " [options]"));
  options.add_options()("json", "Print JSON instead of text (default: off)");
  if (command.has_output) {
    options.add_options()("output", "What to write; must not exist (no default)",
                          cxxopts::value<std::string>(), "PATH");
  }
  if (!command.formats.empty()) {
    options.add_options()("format",
                          cat("Whose files to write: ", join(command.formats, ", "),
                              " (default: ", command.formats.front(), ")"),
                          cxxopts::value<std::string>(), "NAME");
  }
  options.add_options()("h,help", "Print this help and do nothing else (default: off)");
  return options;
}

}  // namespace

CommandOptions parse_command(const CommandDescription& command,
                             std::span<const std::string> words) {
  std::vector<std::string> arguments;
  for (const std::string& word : words) arguments.push_back(with_hyphens(word));
  refuse_unknown_options(command, arguments);
  std::vector<const char*> pointers = {command.name.c_str()};
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  cxxopts::Options options = declare(command);
  CommandOptions parsed;
  parsed.help = options.help();
  try {
    const auto result = options.parse(static_cast<int>(pointers.size()), pointers.data());
    parsed.is_help = result.count("help") > 0 && result["help"].as<bool>();
    parsed.is_json = result.count("json") > 0 && result["json"].as<bool>();
    // Not a positional option of cxxopts: that would cut paths at commas.
    parsed.paths = result.unmatched();
    if (command.has_output && result.count("output") > 0) {
      parsed.output = result["output"].as<std::string>();
    }
    if (!command.formats.empty() && result.count("format") > 0) {
      parsed.format = result["format"].as<std::string>();
    }
  } catch (const cxxopts::exceptions::exception& error) {
    throw ConfigError(
        cat(command.name, ": ", error.what(), ". Fix: see ", command.name, " --help"));
  }
  if (!parsed.format.empty()) check_format(command, parsed.format);
  if (parsed.is_help || parsed.paths.size() == command.path_count) return parsed;
  throw ConfigError(cat(command.name, " takes ", command.path_count, " path",
                        command.path_count == 1 ? "" : "s", " (", command.path_names, "), got ",
                        parsed.paths.size(), ". Fix: see ", command.name, " --help"));
}

}  // namespace assay::checkpoints
