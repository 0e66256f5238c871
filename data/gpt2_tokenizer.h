// GPT-2's tokenizer: its splitting rule, its vocabulary, its merges. See tokenizer.h.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizer.h"

namespace assay::data {

// Reads encoder.json and vocab.bpe from the folder. Throws ConfigError if none is given or this
// build lacks PCRE2, DataError if a file is missing or is not the released one (by SHA-256).
std::unique_ptr<Tokenizer> make_gpt2_tokenizer(const std::string& vocab_dir);

}  // namespace assay::data
