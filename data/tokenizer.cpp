#include "data/tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/gpt2_tokenizer.h"

namespace assay::data {
namespace {

constexpr int64_t kByteVocabulary = 256;
constexpr std::string_view kTokenizerNames[] = {"bytes", "gpt2"};

class ByteEncoder : public Encoder {
 public:
  void encode(std::string_view text, std::vector<uint16_t>& ids) override {
    const size_t before = ids.size();
    ids.resize(before + text.size());
    for (size_t i = 0; i < text.size(); ++i) {
      ids[before + i] = static_cast<unsigned char>(text[i]);
    }
  }
};

class ByteTokenizer : public Tokenizer {
 public:
  std::string_view name() const override { return "bytes"; }
  int64_t vocabulary_size() const override { return kByteVocabulary; }
  bool wants_utf8() const override { return false; }
  int64_t end_of_text() const override { return -1; }
  std::unique_ptr<Encoder> make_encoder() const override { return std::make_unique<ByteEncoder>(); }
  std::string decode(std::span<const int64_t> ids) const override {
    check_ids(ids, kByteVocabulary, "bytes");
    return std::string(ids.begin(), ids.end());
  }
  std::vector<std::string> vocabulary_hashes() const override { return {}; }
};

bool is_ascii_space(char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }

bool is_ascii_word(char letter) { return letter > ' ' && letter < '\x7F'; }

}  // namespace

std::span<const std::string_view> tokenizer_names() { return kTokenizerNames; }

std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name, const std::string& vocab_dir) {
  if (name == "gpt2") return make_gpt2_tokenizer(vocab_dir);
  if (name != "bytes") {
    const std::vector<std::string> names(std::begin(kTokenizerNames), std::end(kTokenizerNames));
    const auto nearest = nearest_spelling(name, names);
    throw ConfigError(cat("tokenizer is ", quoted(name), ", must be one of ", join(names, ", "),
                          nearest ? cat("; did you mean ", quoted(*nearest), "?") : ""));
  }
  if (!vocab_dir.empty()) {
    throw ConfigError(cat("vocab_dir is ", quoted(vocab_dir),
                          ", but the tokenizer bytes has its vocabulary built in. Fix: drop "
                          "--vocab_dir, or --tokenizer gpt2"));
  }
  return std::make_unique<ByteTokenizer>();
}

size_t safe_cut(std::string_view text, size_t wanted) {
  for (size_t place = std::max<size_t>(wanted, 1); place < text.size(); ++place) {
    if (is_ascii_space(text[place]) && is_ascii_word(text[place - 1])) return place;
  }
  return text.size();
}

void check_ids(std::span<const int64_t> ids, int64_t vocabulary, std::string_view tokenizer) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocabulary) continue;
    throw DataError(cat("token ", i, " is ", ids[i], ", the tokenizer ", tokenizer,
                        " has ids in [0, ", vocabulary - 1,
                        "]. Fix: decode with the tokenizer that wrote the tokens"));
  }
}

}  // namespace assay::data
