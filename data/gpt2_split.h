// Splits a text into the pieces within which GPT-2's byte-pair encoding merges: words with the
// space before them, numbers, other signs, white space, English contractions.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace assay::data {

// False in a build without PCRE2; a Gpt2Splitter cannot be made then.
bool has_gpt2_splitter();

// Thread-compatible: one a thread.
class Gpt2Splitter {
 public:
  Gpt2Splitter();  // throws ConfigError in a build without PCRE2
  ~Gpt2Splitter();
  Gpt2Splitter(const Gpt2Splitter&) = delete;
  Gpt2Splitter& operator=(const Gpt2Splitter&) = delete;
  // Length of the piece that starts at `begin`, in bytes, >= 1. The text must be valid UTF-8 and
  // begin < text.size() the start of a character.
  size_t piece_length(std::string_view text, size_t begin);

 private:
  struct Pattern;
  std::unique_ptr<Pattern> pattern_;
};

}  // namespace assay::data
