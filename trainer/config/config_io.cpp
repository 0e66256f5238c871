#include "trainer/config/config_io.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "trainer/config/layer.h"
#include "trainer/config/model_sizes.h"

namespace assay::config {
namespace {

void throw_if_any(const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  if (lines.size() == 1) throw ConfigError(lines.front());
  throw ConfigError(cat(lines.size(), " problems in the configuration:\n  ", join(lines, "\n  ")));
}

// What a resume starts from: the run's own configuration, less what concerned its own session.
RunConfig starting_point(const RunConfig* base) {
  const RunConfig defaults;
  if (base == nullptr) return defaults;
  RunConfig config = *base;
  for (const Field& field : fields()) {
    if (field.is_of_session) field.set(config, field.get(defaults));
  }
  return config;
}

enum class Depth { kSyntax, kCombinations };

ParsedArguments parse(std::span<const std::string> words, const RunConfig* base, Depth depth) {
  ParsedArguments parsed{.config = starting_point(base), .given = {}};
  Violations violations;
  Layer from_words(violations);
  const CommandLine line = set_from_words(from_words, words);
  parsed.is_help = line.is_help;
  parsed.is_print_config = line.is_print_config;
  if (parsed.is_help) return parsed;

  Layer from_file(violations);
  if (!line.config_path.empty()) {
    try {
      set_from_file(from_file, line.config_path);
    } catch (const ConfigError& error) {  // joins the other violations
      violations.lines.push_back(error.what());
      violations.has_unknown_key = true;
    }
  }
  std::set<std::string> given;
  from_file.apply(&parsed.config, &given);
  from_words.apply(&parsed.config, &given);
  parsed.given.assign(given.begin(), given.end());
  if (depth == Depth::kCombinations && !violations.has_unknown_key) {
    for (std::string& line_text : violations_of(parsed.config, violations.broken_keys)) {
      violations.lines.push_back(std::move(line_text));
    }
  }
  throw_if_any(violations.lines);
  if (depth == Depth::kCombinations) parsed.config.data.name = effective_dataset(parsed.config);
  return parsed;
}

}  // namespace

ParsedArguments parse_train_arguments(std::span<const std::string> words, const RunConfig* base) {
  return parse(words, base, Depth::kCombinations);
}

ParsedArguments peek_train_arguments(std::span<const std::string> words) {
  return parse(words, nullptr, Depth::kSyntax);
}

}  // namespace assay::config
