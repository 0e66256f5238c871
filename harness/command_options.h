// Options of the harness's own commands: `--name VALUE`, `--name=VALUE`, `--flag`, `--no-flag`; '-'
// and
// '_' are the same; unknown ones are refused with the nearest spelling. Help is made from the
// table.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::harness {

struct OptionSpec {
  std::string_view name;   // with '-': "time-budget"
  std::string_view value;  // what the value is called; empty: a flag
  std::string_view default_text;
  std::string_view help;  // one sentence
  std::string_view group;
};

struct CommandWords {
  std::map<std::string, std::string> values;  // by name with '-'; flags are "true" or "false"
  std::vector<std::string> positionals;
  bool is_help = false;
  std::string value_or(const std::string& name, const std::string& otherwise) const;
  bool is_on(const std::string& name) const { return value_or(name, "false") == "true"; }
};

// Throws ConfigError naming every bad word at once.
CommandWords parse_command_words(std::span<const OptionSpec> specs,
                                 std::span<const std::string> words, size_t max_positionals);

std::string command_help(std::string_view usage, std::string_view sentence,
                         std::span<const OptionSpec> specs);

}  // namespace assay::harness
