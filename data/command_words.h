// What the subcommands of `assay data` share in reading their words. For *_command.cpp only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cxxopts {
class Options;
class ParseResult;
}  // namespace cxxopts

namespace assay::data {

// Parses the words behind "assay data <verb>". `names` are the options that exist; '-' and '_' are
// the same. Positional words are the option "words". Throws ConfigError with the nearest spelling.
cxxopts::ParseResult parse_command_words(cxxopts::Options& options,
                                         std::span<const std::string> words,
                                         const std::vector<std::string>& names,
                                         std::string_view verb);

// The numbers of options given as text. Throw ConfigError naming option, value and range.
struct NumberRange {
  int64_t low = 1;
  int64_t high = 0;
};
int64_t whole_number(const std::string& text, std::string_view option, const NumberRange& range);
int64_t thread_count(const std::string& text, int64_t cpus);        // --threads; 0: cpus
double fraction(const std::string& text, std::string_view option);  // in [0, 1)

// Throws ConfigError unless `word` is one of the choices.
void check_choice(const std::string& word, std::string_view option,
                  const std::vector<std::string>& choices);

// Shows how far long work is, on stderr, from two seconds on; on a terminal in one line that is
// rewritten, else as a line every 30 seconds. Main thread only.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what) : what_(std::move(what)), started_(now_seconds()) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(uint64_t done, uint64_t total);

 private:
  static double now_seconds();
  std::string what_;
  double started_ = 0;
  double shown_ = 0;
  bool is_open_ = false;  // the cursor is behind a line of ours
};

}  // namespace assay::data
