// Raw text to token files, on several threads; the output does not depend on how many.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/tokenizer.h"

namespace assay::data {

enum class TokenFormat { kLlmC, kRaw };
enum class InvalidUtf8 { kFail, kReplace };

struct TokenizeRequest {
  std::vector<std::string> inputs;  // in order; each file is one document
  std::string output_dir;
  TokenFormat format = TokenFormat::kLlmC;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kFail;  // tokenizers that want UTF-8 only
  double val_fraction = 0.1;     // the last part of all bytes, cut at a character; 0: no val.bin
  bool has_end_of_text = false;  // the tokenizer's end-of-text id behind each document
  bool may_overwrite = false;
  int64_t num_threads = 1;
  // Called by this thread now and then with bytes of text done and in all. May be empty.
  std::function<void(uint64_t, uint64_t)> on_progress = {};
};

struct TokenizedSplit {
  std::string name;  // train, val
  SourceFile file;
  uint64_t text_bytes = 0;
  int64_t tokens = 0;
};

struct TokenizeResult {
  std::vector<TokenizedSplit> splits;
  std::vector<SourceFile> sources;
};

// Writes train.bin, val.bin and, last, the manifest tokens.json into output_dir; each is complete
// or not there. Throws ConfigError for settings that contradict each other or would overwrite
// files, DataError for texts that cannot be read, are no UTF-8 (with the byte's place), or give no
// tokens, and for files that cannot be written.
TokenizeResult tokenize_files(const Tokenizer& tokenizer, const TokenizeRequest& request);

}  // namespace assay::data
