// What the tests of trainer/config share: parsing words, and the message of a refusal.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "trainer/config/config_io.h"

namespace assay::config {

inline ParsedArguments parse_words(const std::vector<std::string>& words,
                                   const RunConfig* base = nullptr) {
  return parse_train_arguments(words, base);
}

// The message of the refusal; empty if the words are accepted or refused as anything but usage.
inline std::string refusal(const std::vector<std::string>& words, const RunConfig* base = nullptr) {
  try {
    parse_train_arguments(words, base);
  } catch (const Error& error) {
    if (error.code() == ExitCode::kUsage) return error.what();
  }
  return "";
}

// Writes a CONFIG.json and parses it, with further words after it.
class ConfigFile {
 public:
  explicit ConfigFile(std::string_view text) : path_(join_path(folder_.path(), "config.json")) {
    FileWriter file(path_, "config");
    file.write(text);
    file.close();
  }
  const std::string& path() const { return path_; }
  ParsedArguments parse(std::vector<std::string> words = {}) const {
    words.insert(words.begin(), path_);
    return parse_words(words);
  }
  std::string refusal(std::vector<std::string> words = {}) const {
    words.insert(words.begin(), path_);
    return assay::config::refusal(words);
  }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

}  // namespace assay::config
