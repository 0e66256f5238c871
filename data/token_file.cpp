#include "data/token_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"

namespace assay::data {
namespace {

constexpr size_t kHeaderWords = kTokenHeaderBytes / sizeof(int32_t);

int32_t word_at(std::span<const unsigned char> head, size_t index) {
  int32_t word = 0;
  std::memcpy(&word, head.data() + index * sizeof(word), sizeof(word));
  return word;
}

int32_t byte_swapped(int32_t word) {
  return static_cast<int32_t>(__builtin_bswap32(static_cast<uint32_t>(word)));
}

bool starts_with(std::span<const unsigned char> head, std::string_view magic) {
  return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}

bool is_printable(unsigned char byte) {
  return (byte >= ' ' && byte < 0x7F) || byte == '\n' || byte == '\r' || byte == '\t';
}

// What the file is, if it is plainly something else; empty otherwise.
std::string other_appearance(std::span<const unsigned char> head) {
  constexpr size_t kFewest = 64;  // bytes; by chance 64 are printable once in 2^90 files
  if (starts_with(head, "\x93NUMPY")) return "a numpy .npy file: save array.tofile(path) instead";
  if (starts_with(head, "PK\x03\x04")) return "a zip archive (.npz, .pt): unpack it";
  if (starts_with(head, "\x1f\x8b\x08")) return "a gzip file: unpack it";
  if (head.size() >= kFewest && std::all_of(head.begin(), head.end(), is_printable)) {
    return "text: make token files of it with assay data tokenize";
  }
  if (head.size() < sizeof(int32_t)) return "";
  switch (word_at(head, 0)) {
    case 20240326:
      return "llm.c's model weights, not tokens";
    case 20240328:
      return "llm.c's tokenizer, not tokens";
    default:
      break;
  }
  const int32_t swapped = byte_swapped(word_at(head, 0));
  if (swapped == kTokenMagic16 || swapped == kTokenMagic32) {
    return "an llm.c token file in the wrong byte order (big-endian): write it little-endian";
  }
  return "";
}

[[noreturn]] void refuse_bits(const std::string& path, int64_t bits, const std::string& is) {
  throw DataError(cat("data.token_bits is ", bits, ", but ", path, " ", is,
                      ". Fix: data.token_bits=", bits == 16 ? 32 : 16, ", or leave it out"));
}

TokenLayout header_layout(std::span<const unsigned char> head, uint64_t file_bytes,
                          const std::string& path) {
  if (head.size() < kHeaderWords * sizeof(int32_t)) {
    throw DataError(cat("token file ", path, " has ", file_bytes, " bytes, its llm.c header alone ",
                        "has ", kTokenHeaderBytes, ". Fix: the file is cut off, write it again"));
  }
  TokenLayout layout{.has_header = true, .header_bytes = kTokenHeaderBytes};
  const bool is_16 = word_at(head, 0) == kTokenMagic16;
  const int32_t version = word_at(head, 1);
  const int32_t expected_version = is_16 ? 1 : 7;
  if (version != expected_version) {
    throw DataError(cat("token file ", path, " has version ", version, " behind llm.c's magic ",
                        word_at(head, 0), ", must be ", expected_version,
                        ". Fix: write it again with a llm.c of that version"));
  }
  layout.token_bytes = is_16 ? 2 : 4;
  layout.count = word_at(head, 2);
  const auto payload = static_cast<int64_t>(file_bytes) - kTokenHeaderBytes;
  if (layout.count >= 0 && payload == layout.count * layout.token_bytes) return layout;
  const int64_t other_bytes = is_16 ? 4 : 2;
  const bool is_other_width = layout.count > 0 && payload == layout.count * other_bytes;
  throw DataError(cat(
      "token file ", path, " has ", payload, " bytes of tokens, its header counts ", layout.count,
      " of ", layout.token_bytes, " bytes, which are ", layout.count * layout.token_bytes,
      is_other_width ? cat(": the tokens were written with ", other_bytes, " bytes each") : "",
      ". Fix: write the file again"));
}

TokenLayout bare_layout(uint64_t file_bytes, const std::string& path, int64_t bits) {
  TokenLayout layout{.token_bytes = bits / 8};
  const auto bytes = static_cast<int64_t>(file_bytes);
  layout.count = bytes / layout.token_bytes;
  if (bytes == 0) throw DataError(cat("token file ", path, " is empty. Fix: write it again"));
  if (bytes % layout.token_bytes == 0) return layout;
  throw DataError(cat(
      "token file ", path, " has ", bytes, " bytes, ", bits, "-bit tokens need a multiple of ",
      layout.token_bytes, " (", bytes - bytes % layout.token_bytes, " or ",
      bytes - bytes % layout.token_bytes + layout.token_bytes,
      bits == 32 && bytes % 2 == 0 ? "; as 16-bit tokens it fits" : "",
      "). Fix: the file is cut off or no token file", bits == 32 ? ", or data.token_bits=16" : ""));
}

// The largest number of each half of the stream, over whole 16-bit halves.
struct HalfMaxima {
  uint16_t even = 0;
  uint16_t odd = 0;
};

HalfMaxima half_maxima(const unsigned char* bytes, size_t halves) {
  std::array<uint16_t, 16> lanes{};
  size_t i = 0;
  for (; i + lanes.size() <= halves; i += lanes.size()) {
    std::array<uint16_t, 16> block;
    std::memcpy(block.data(), bytes + i * 2, sizeof(block));
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      lanes[lane] = std::max(lanes[lane], block[lane]);
    }
  }
  HalfMaxima maxima;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    uint16_t& half = lane % 2 == 0 ? maxima.even : maxima.odd;
    half = std::max(half, lanes[lane]);
  }
  for (; i < halves; ++i) {
    uint16_t value = 0;
    std::memcpy(&value, bytes + i * 2, sizeof(value));
    uint16_t& half = i % 2 == 0 ? maxima.even : maxima.odd;
    half = std::max(half, value);
  }
  return maxima;
}

uint32_t largest_word(const unsigned char* bytes, size_t words) {
  uint32_t largest = 0;
  for (size_t i = 0; i < words; ++i) {
    uint32_t value = 0;
    std::memcpy(&value, bytes + i * sizeof(value), sizeof(value));
    largest = std::max(largest, value);
  }
  return largest;
}

template <class Token>
void convert(const unsigned char* bytes, std::span<int64_t> inputs, std::span<int64_t> targets) {
  // Both from one array of tokens, so that the loops are plain widening copies.
  const size_t count = inputs.size();
  const auto widen = [](const unsigned char* from, int64_t* to, size_t length) {
    for (size_t i = 0; i < length; ++i) {
      Token token = 0;
      std::memcpy(&token, from + i * sizeof(Token), sizeof(Token));
      to[i] = token;
    }
  };
  widen(bytes, inputs.data(), count);
  widen(bytes + sizeof(Token), targets.data(), count);
}

// 32-bit numbers read as 16-bit ones show their high halves at the odd places: all zero below
// 65,536, and small beside full low halves above. 64 real tokens never look so.
void check_not_32_bits(const TokenFile& file, const TokenFacts& facts) {
  constexpr int64_t kFewest = 64;
  if (file.layout().token_bytes != 2 || file.layout().has_header || file.size() < kFewest) return;
  const bool has_zero_halves = facts.largest_odd_half == 0 && facts.largest_even_half > 0;
  const bool has_small_halves =
      facts.largest_odd_half < 256 && facts.largest_even_half > 256 * (facts.largest_odd_half + 1);
  if (!has_zero_halves && !has_small_halves) return;
  throw DataError(cat("token file ", file.path(), " was read as ", file.size(),
                      " tokens of 16 bits, but looks like ", file.size() / 2,
                      " of 32 bits: no token at an odd place is above ", facts.largest_odd_half,
                      ", those at even places reach ", facts.largest_even_half,
                      ". Fix: data.token_bits=32 (assay data: --token_bits 32), or, if it really "
                      "has 16 bits, give it llm.c's header"));
}

MappedFile map_source(const std::string& path) {
  try {
    return MappedFile(path);
  } catch (const FileError& error) {
    throw DataError(cat("token file: ", error.what(), ". Fix: check --data_dir and the file"));
  }
}

}  // namespace

TokenLayout token_layout(std::span<const unsigned char> head, uint64_t file_bytes,
                         const std::string& path, std::optional<int64_t> token_bits) {
  const auto whole_head = head.first(std::min<size_t>(head.size(), kTokenHeaderBytes));
  const std::string other = other_appearance(whole_head);
  if (!other.empty()) throw DataError(cat(path, " is no token file, it is ", other));
  const int32_t magic = head.size() >= sizeof(int32_t) ? word_at(head, 0) : 0;
  if (magic == kTokenMagic16 || magic == kTokenMagic32) {
    const TokenLayout layout = header_layout(whole_head, file_bytes, path);
    if (token_bits && *token_bits != layout.token_bytes * 8) {
      refuse_bits(path, *token_bits,
                  cat("says in its header that its tokens have ", layout.token_bytes * 8));
    }
    return layout;
  }
  return bare_layout(file_bytes, path, token_bits.value_or(16));
}

std::string token_header(int64_t count, const std::string& path) {
  if (count > std::numeric_limits<int32_t>::max()) {
    throw DataError(cat("token file ", path, " would hold ", count,
                        " tokens, llm.c's header counts at most ",
                        std::numeric_limits<int32_t>::max(),
                        ". Fix: --format raw, or tokenize the text in several parts"));
  }
  std::array<int32_t, kHeaderWords> words{};
  words[0] = kTokenMagic16;
  words[1] = 1;
  words[2] = static_cast<int32_t>(count);
  std::string bytes(sizeof(words), '\0');
  std::memcpy(bytes.data(), words.data(), sizeof(words));
  return bytes;
}

TokenFile::TokenFile(std::string path, std::optional<int64_t> token_bits)
    : path_(std::move(path)),
      stamp_(stamp_of(path_)),
      map_(map_source(path_)),
      layout_(token_layout({map_.data(), std::min<size_t>(map_.size(), kTokenHeaderBytes)},
                           map_.size(), path_, token_bits)) {}

int64_t TokenFile::at(int64_t index) const {
  const unsigned char* place = map_.data() + layout_.header_bytes + index * layout_.token_bytes;
  if (layout_.token_bytes == 2) {
    uint16_t token = 0;
    std::memcpy(&token, place, sizeof(token));
    return token;
  }
  uint32_t token = 0;
  std::memcpy(&token, place, sizeof(token));
  return token;
}

void TokenFile::read_window(int64_t first, std::span<int64_t> inputs,
                            std::span<int64_t> targets) const {
  const auto count = static_cast<int64_t>(inputs.size());
  if (first < 0 || first + count >= layout_.count || targets.size() != inputs.size()) {
    throw InternalError(cat("tokens ", first, " to ", first + count, " asked for, ", path_, " has ",
                            layout_.count));
  }
  const unsigned char* place = map_.data() + layout_.header_bytes + first * layout_.token_bytes;
  if (layout_.token_bytes == 2) {
    convert<uint16_t>(place, inputs, targets);
  } else {
    convert<uint32_t>(place, inputs, targets);
  }
}

TokenFacts TokenFile::facts() const {
  const std::string kind = cat("tokens-", layout_.token_bytes);
  const std::optional<NumberFacts> known = cached_facts(stamp_, kind);
  if (known && known->numbers.size() == 4) {
    return {known->text, known->numbers[0], known->numbers[1], known->numbers[2],
            known->numbers[3]};
  }
  constexpr size_t kBlockBytes = size_t{1} << 20;  // stays in the second-level cache
  TokenFacts facts;
  Sha256 digest;
  const auto header = static_cast<size_t>(layout_.header_bytes);
  digest.update(map_.data(), header);
  for (size_t done = header; done < map_.size(); done += kBlockBytes) {
    const unsigned char* block = map_.data() + done;
    const size_t bytes = std::min(kBlockBytes, map_.size() - done);
    digest.update(block, bytes);
    const HalfMaxima halves = half_maxima(block, bytes / 2);
    facts.largest_even_half = std::max<int64_t>(facts.largest_even_half, halves.even);
    facts.largest_odd_half = std::max<int64_t>(facts.largest_odd_half, halves.odd);
    const int64_t largest = layout_.token_bytes == 2 ? std::max(halves.even, halves.odd)
                                                     : largest_word(block, bytes / 4);
    if (largest <= facts.largest) continue;
    facts.largest = largest;
    int64_t index = static_cast<int64_t>(done - header) / layout_.token_bytes;
    while (at(index) != largest) ++index;
    facts.largest_at = index;
  }
  facts.sha256 = digest.hex();
  keep_facts(stamp_, kind,
             {.text = facts.sha256,
              .numbers = {facts.largest, facts.largest_at, facts.largest_even_half,
                          facts.largest_odd_half}});
  return facts;
}

void check_tokens(const TokenFile& file, const TokenFacts& facts, int64_t vocabulary) {
  constexpr int64_t kMostIds = int64_t{1} << 24;  // the largest vocabulary a model may have
  constexpr int64_t kMost16Bits = int64_t{1} << 16;
  check_not_32_bits(file, facts);
  const int64_t limit = vocabulary > 0 ? vocabulary : kMostIds;
  if (facts.largest >= limit) {
    const bool is_16_maybe = file.layout().token_bytes == 4 && !file.layout().has_header &&
                             std::max(facts.largest_even_half, facts.largest_odd_half) < limit;
    throw DataError(cat("token file ", file.path(), ": token ", facts.largest_at, " is ",
                        facts.largest, ", must be in [0, ", limit - 1, "]",
                        is_16_maybe ? "; read as 16-bit tokens every id is in that range" : "",
                        is_16_maybe ? ". Fix: data.token_bits=16 (assay data: --token_bits 16)"
                                    : ". Fix: the model whose tokenizer wrote the file, e.g. "
                                      "model.vocab_size, or other files"));
  }
  if (vocabulary > kMost16Bits && file.layout().token_bytes == 2) {
    throw DataError(cat("token file ", file.path(), " has 16-bit tokens, which end at ",
                        kMost16Bits - 1, "; the model's vocabulary is ", vocabulary,
                        ", so that larger ids would have been wrapped. Fix: write 32-bit tokens "
                        "(data.token_bits=32), or a model.vocab_size of at most ",
                        kMost16Bits));
  }
}

}  // namespace assay::data
