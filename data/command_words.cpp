#include "data/command_words.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include <cxxopts.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

namespace assay::data {
namespace {

// "--data-dir=x" -> "--data_dir=x"; refuses what is no option of this command.
std::string checked_word(const std::string& word, const std::vector<std::string>& names,
                         const std::string& command) {
  if (!word.starts_with("--") || word.size() == 2) return word;
  const size_t end = std::min(word.find('='), word.size());
  std::string name = word.substr(2, end - 2);
  std::replace(name.begin(), name.end(), '-', '_');
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    const auto nearest = nearest_spelling(name, names);
    throw ConfigError(cat("unknown option ", quoted("--" + name), " of ", command,
                          nearest ? cat("; did you mean ", quoted("--" + *nearest), "?") : "",
                          " Fix: see ", command, " --help"));
  }
  return cat("--", name, word.substr(end));
}

}  // namespace

cxxopts::ParseResult parse_command_words(cxxopts::Options& options,
                                         std::span<const std::string> words,
                                         const std::vector<std::string>& names,
                                         std::string_view verb) {
  const std::string command = verb.empty() ? "assay data" : cat("assay data ", verb);
  std::vector<std::string> checked = {command};
  for (const std::string& word : words) checked.push_back(checked_word(word, names, command));
  std::vector<const char*> arguments;
  for (const std::string& word : checked) arguments.push_back(word.c_str());
  try {
    return options.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const cxxopts::exceptions::exception& error) {
    throw ConfigError(cat(command, ": ", error.what(), ". Fix: see ", command, " --help"));
  }
}

int64_t whole_number(const std::string& text, std::string_view option, const NumberRange& range) {
  const std::optional<int64_t> number = parse_int64(text);
  if (number && *number >= range.low && *number <= range.high) return *number;
  throw ConfigError(cat("--", option, " is ", quoted(text), ", must be a whole number in [",
                        range.low, ", ", range.high, "]. Fix: --", option, " ", range.low));
}

int64_t thread_count(const std::string& text, int64_t cpus) {
  constexpr int64_t kMostThreads = 1024;
  const int64_t threads = whole_number(text, "threads", {.low = 0, .high = kMostThreads});
  return threads == 0 ? cpus : threads;
}

double fraction(const std::string& text, std::string_view option) {
  const std::optional<double> number = parse_double(text);
  if (number && *number >= 0 && *number < 1) return *number;
  throw ConfigError(cat("--", option, " is ", quoted(text), ", must be a number in [0, 1). Fix: --",
                        option, " 0.1"));
}

void check_choice(const std::string& word, std::string_view option,
                  const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), word) != choices.end()) return;
  const auto nearest = nearest_spelling(word, choices);
  throw ConfigError(cat("--", option, " is ", quoted(word), ", must be one of ",
                        join(choices, ", "),
                        nearest ? cat("; did you mean ", quoted(*nearest), "?") : ""));
}

double ProgressLine::now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void ProgressLine::show(uint64_t done, uint64_t total) {
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;
  const double now = now_seconds();
  const double pause = is_terminal ? 0.2 : 30;
  if (now - started_ < 2 || now - shown_ < pause || total == 0) return;
  shown_ = now;
  is_open_ = is_terminal;
  const double part = static_cast<double>(done) / static_cast<double>(total);
  const double left = part > 0 ? (now - started_) * (1 - part) / part : 0;
  std::fprintf(stderr, "%s%s: %.0f %%, about %s left%s", is_terminal ? "\r" : "", what_.c_str(),
               std::floor(100 * part), duration_text(left).c_str(), is_terminal ? "   " : "\n");
}

ProgressLine::~ProgressLine() {
  if (is_open_) std::fputc('\n', stderr);
}

}  // namespace assay::data
