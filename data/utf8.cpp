#include "data/utf8.h"

#include <cstdint>
#include <cstring>

namespace assay::data {
namespace {

unsigned char byte_at(std::string_view text, size_t place) {
  return static_cast<unsigned char>(text[place]);
}

struct Sequence {
  size_t length = 1;  // bytes taken: all of a character, or the maximal ill-formed part
  bool is_valid = false;
};

// Unicode 15, table 3-7: the first byte gives the length and bounds the second one.
Sequence sequence_at(std::string_view text, size_t begin) {
  const unsigned char first = byte_at(text, begin);
  if (first < 0x80) return {1, true};
  if (first < 0xC2 || first > 0xF4) return {1, false};
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  for (size_t i = 1; i < length; ++i) {
    if (begin + i >= text.size()) return {i, false};
    const unsigned char next = byte_at(text, begin + i);
    if (next < low || next > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true};
}

// The first place at or behind `begin` whose byte is not ASCII.
size_t skip_ascii(std::string_view text, size_t begin) {
  constexpr uint64_t kHighBits = 0x8080808080808080ULL;
  while (begin + sizeof(uint64_t) <= text.size()) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + begin, sizeof(word));
    if ((word & kHighBits) != 0) break;
    begin += sizeof(word);
  }
  while (begin < text.size() && byte_at(text, begin) < 0x80) ++begin;
  return begin;
}

}  // namespace

size_t valid_utf8_prefix(std::string_view text) {
  for (size_t place = skip_ascii(text, 0); place < text.size(); place = skip_ascii(text, place)) {
    const Sequence sequence = sequence_at(text, place);
    if (!sequence.is_valid) return place;
    place += sequence.length;
  }
  return text.size();
}

std::string with_replacements(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  while (!text.empty()) {
    const size_t valid = valid_utf8_prefix(text);
    repaired.append(text.substr(0, valid));
    if (valid == text.size()) break;
    repaired.append("\xEF\xBF\xBD");
    text.remove_prefix(valid + sequence_at(text, valid).length);
  }
  return repaired;
}

}  // namespace assay::data
