// Text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::data {

// One thread's encoder: holds that thread's buffers and cache. Must not outlive its tokenizer.
class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends the ids of a text, which must be UTF-8 if the tokenizer wants_utf8().
  virtual void encode(std::string_view text, std::vector<uint16_t>& ids) = 0;
};

// Thread-safe: all calls are const.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string_view name() const = 0;
  virtual int64_t vocabulary_size() const = 0;
  virtual bool wants_utf8() const = 0;
  // The id between documents; -1 if there is none.
  virtual int64_t end_of_text() const = 0;
  virtual std::unique_ptr<Encoder> make_encoder() const = 0;
  // The bytes that the ids stand for; they need not be UTF-8 where ids end within a character.
  // Throws DataError naming place, value and range of an id outside the vocabulary.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  // SHA-256 of what the vocabulary was read from; empty if it is built in.
  virtual std::vector<std::string> vocabulary_hashes() const = 0;
};

std::span<const std::string_view> tokenizer_names();  // bytes, gpt2

// `bytes`: ids 0..255. `gpt2`: GPT-2's byte-pair encoding, token for token what tiktoken's
// encode_ordinary gives; its vocabulary is read from encoder.json and vocab.bpe in `vocab_dir`,
// whose hashes must be those of the released files.
// Throws ConfigError for an unknown name or a missing vocab_dir, DataError for wrong files.
std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name, const std::string& vocab_dir);

// A place at or behind `wanted` where a text can be cut without changing any token: between an
// ASCII character that is no white space and ASCII white space. text.size() if there is none.
size_t safe_cut(std::string_view text, size_t wanted);

// Throws DataError unless every id lies in [0, vocabulary), naming place, value and range.
void check_ids(std::span<const int64_t> ids, int64_t vocabulary, std::string_view tokenizer);

}  // namespace assay::data
