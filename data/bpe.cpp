#include "data/bpe.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace assay::data {
namespace {

constexpr size_t kMostTokens = 65536;  // ids are written with 16 bits
constexpr std::string_view kEndOfText = "<|endoftext|>";

// GPT-2 spells bytes as printable characters: '!'..'~', U+00A1..U+00AC and U+00AE..U+00FF stand for
// themselves, the other 68 bytes in order for U+0100 and following (its encoder.py,
// bytes_to_unicode).
bool stands_for_itself(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

std::map<uint32_t, unsigned char> spelled_bytes() {
  std::map<uint32_t, unsigned char> bytes;
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    bytes[stands_for_itself(byte) ? byte : next++] = static_cast<unsigned char>(byte);
  }
  return bytes;
}

// The bytes of a token in GPT-2's spelling; nothing if a character stands for no byte.
std::optional<std::string> unspelled(std::string_view spelling) {
  static const std::map<uint32_t, unsigned char> bytes = spelled_bytes();
  std::string token;
  for (size_t i = 0; i < spelling.size(); ++i) {
    auto code = static_cast<uint32_t>(static_cast<unsigned char>(spelling[i]));
    if (code >= 0x80) {  // every such character has two bytes: they end at U+0143
      if ((code & 0xE0) != 0xC0 || i + 1 == spelling.size()) return std::nullopt;
      const auto second = static_cast<uint32_t>(static_cast<unsigned char>(spelling[++i]));
      if ((second & 0xC0) != 0x80) return std::nullopt;
      code = (code & 0x1F) << 6 | (second & 0x3F);
    }
    const auto found = bytes.find(code);
    if (found == bytes.end()) return std::nullopt;
    token.push_back(static_cast<char>(found->second));
  }
  return token;
}

[[noreturn]] void refuse(std::string_view file, const std::string& what) {
  throw DataError(cat("vocabulary file ", file, ": ", what, ". Fix: fetch GPT-2's own file again"));
}

nlohmann::json parse_encoder(std::string_view text) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    refuse("encoder.json", cat("no JSON at byte ", error.byte));
  }
  if (!json.is_object() || json.empty() || json.size() > kMostTokens) {
    refuse("encoder.json", cat("has ", json.is_object() ? json.size() : size_t{0},
                               " tokens, must be a JSON object of 1 to ", kMostTokens));
  }
  return json;
}

void read_tokens(std::string_view encoder_json, BpeVocabulary& vocabulary) {
  const nlohmann::json json = parse_encoder(encoder_json);
  vocabulary.tokens.resize(json.size());
  std::vector<bool> is_taken(json.size());
  for (const auto& [spelling, value] : json.items()) {
    const uint64_t id = value.is_number_unsigned() ? value.get<uint64_t>() : json.size();
    if (id >= json.size() || is_taken[id]) {
      refuse("encoder.json",
             cat("the id of token ", quoted(spelling), " is ",
                 escaped(value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)
                             .substr(0, 40)),
                 ", must be a number of its own in [0, ", json.size() - 1, "]"));
    }
    is_taken[id] = true;
    if (spelling == kEndOfText) {
      vocabulary.end_of_text = static_cast<int64_t>(id);
      vocabulary.tokens[id] = spelling;
      continue;
    }
    const std::optional<std::string> token = unspelled(spelling);
    if (!token || token->empty()) {
      refuse("encoder.json", cat("token ", quoted(spelling), " is not in GPT-2's spelling"));
    }
    vocabulary.tokens[id] = *token;
  }
}

using Ids = std::unordered_map<std::string, uint32_t>;

void read_merge(std::string_view line, size_t number, const Ids& ids, int64_t& last,
                BpeVocabulary& vocabulary) {
  const size_t space = line.find(' ');
  const auto left = unspelled(line.substr(0, std::min(space, line.size())));
  const auto right = space == line.npos ? std::nullopt : unspelled(line.substr(space + 1));
  if (!left || !right) refuse("vocab.bpe", cat("line ", number, " is not two tokens"));
  const auto left_id = ids.find(*left);
  const auto right_id = ids.find(*right);
  const auto merged_id = ids.find(*left + *right);
  if (left_id == ids.end() || right_id == ids.end() || merged_id == ids.end()) {
    refuse("vocab.bpe", cat("line ", number, " merges tokens that encoder.json does not have"));
  }
  if (merged_id->second <= last) {
    refuse("vocab.bpe", cat("line ", number, " makes token ", merged_id->second,
                            ", ids must rise, the line before made ", last));
  }
  last = merged_id->second;
  if (!vocabulary.merges.insert(left_id->second, right_id->second, merged_id->second)) {
    refuse("vocab.bpe", cat("line ", number, " repeats a pair"));
  }
}

}  // namespace

MergeTable::MergeTable(size_t capacity) {
  size_t slots = 2;
  int bits = 1;
  for (; slots < 2 * capacity + 2; slots *= 2) ++bits;
  slots_.resize(slots);
  mask_ = slots - 1;
  shift_ = 64 - bits;
}

bool MergeTable::insert(uint32_t left, uint32_t right, uint32_t merged) {
  const uint64_t key = key_of(left, right);
  size_t slot = slot_of(key);
  while (slots_[slot].merged != kNone) {
    if (slots_[slot].key == key) return false;
    slot = (slot + 1) & mask_;
  }
  slots_[slot] = {key, merged};
  return true;
}

BpeVocabulary parse_bpe(std::string_view encoder_json, std::string_view merges) {
  BpeVocabulary vocabulary;
  read_tokens(encoder_json, vocabulary);
  Ids ids;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (static_cast<int64_t>(id) != vocabulary.end_of_text) {
      ids[vocabulary.tokens[id]] = static_cast<uint32_t>(id);
    }
  }
  int64_t largest_byte = -1;
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(std::string(1, static_cast<char>(byte)));
    if (found == ids.end()) refuse("encoder.json", cat("byte ", byte, " has no token"));
    vocabulary.byte_ids[byte] = found->second;
    largest_byte = std::max<int64_t>(largest_byte, found->second);
  }
  vocabulary.merges = MergeTable(vocabulary.tokens.size());
  size_t number = 0;
  int64_t last = largest_byte;
  while (!merges.empty()) {
    const size_t end = std::min(merges.find('\n'), merges.size());
    const std::string_view line = merges.substr(0, end);
    merges.remove_prefix(std::min(end + 1, merges.size()));
    ++number;
    const bool is_version = number == 1 && line.starts_with("#version");
    if (line.empty() || is_version) continue;
    read_merge(line, number, ids, last, vocabulary);
  }
  return vocabulary;
}

void BpeMerger::encode(std::string_view piece, std::vector<uint16_t>& ids) {
  constexpr size_t kShort = 48;  // below, a scan for the best pair is faster than a heap
  if (piece.size() <= kShort) return encode_short(piece, ids);
  encode_long(piece, ids);
}

void BpeMerger::encode_short(std::string_view piece, std::vector<uint16_t>& ids) {
  const MergeTable& merges = vocabulary_.merges;
  ids_.clear();
  for (const char byte : piece) {
    ids_.push_back(vocabulary_.byte_ids[static_cast<unsigned char>(byte)]);
  }
  ranks_.assign(ids_.size(), MergeTable::kNone);  // [i]: what ids_[i] and ids_[i + 1] merge into
  for (size_t i = 0; i + 1 < ids_.size(); ++i) ranks_[i] = merges.find(ids_[i], ids_[i + 1]);
  for (;;) {
    const auto best = std::min_element(ranks_.begin(), ranks_.end());  // the first of equal ones
    if (best == ranks_.end() || *best == MergeTable::kNone) break;
    const auto place = best - ranks_.begin();
    const auto at = static_cast<size_t>(place);
    ids_[at] = *best;
    ids_.erase(ids_.begin() + place + 1);
    ranks_.erase(best);
    ranks_[at] = at + 1 < ids_.size() ? merges.find(ids_[at], ids_[at + 1]) : MergeTable::kNone;
    if (at > 0) ranks_[at - 1] = merges.find(ids_[at - 1], ids_[at]);
  }
  for (const uint32_t id : ids_) ids.push_back(static_cast<uint16_t>(id));
}

void BpeMerger::encode_long(std::string_view piece, std::vector<uint16_t>& ids) {
  if (piece.size() > std::numeric_limits<int32_t>::max()) {
    throw DataError(cat("a word of ", piece.size(), " bytes is longer than tokenizing can take, ",
                        std::numeric_limits<int32_t>::max(), ". Fix: is the file a text?"));
  }
  const MergeTable& merges = vocabulary_.merges;
  const auto count = static_cast<int64_t>(piece.size());
  parts_.resize(piece.size());
  heap_.clear();
  // The heap's top is the smallest rank, and of equal ones the leftmost.
  const auto is_behind = [](const Candidate& a, const Candidate& b) {
    return a.merged != b.merged ? a.merged > b.merged : a.left > b.left;
  };
  const auto offer = [&](int64_t left, int64_t right) {
    if (left < 0 || right < 0) return;
    const uint32_t left_id = parts_[static_cast<size_t>(left)].id;
    const uint32_t right_id = parts_[static_cast<size_t>(right)].id;
    const uint32_t merged = merges.find(left_id, right_id);
    if (merged == MergeTable::kNone) return;
    heap_.push_back(
        {merged, static_cast<uint32_t>(left), static_cast<uint32_t>(right), right_id, left_id});
    std::push_heap(heap_.begin(), heap_.end(), is_behind);
  };
  for (int64_t i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(piece[static_cast<size_t>(i)]);
    parts_[static_cast<size_t>(i)] = {vocabulary_.byte_ids[byte], i - 1,
                                      i + 1 < count ? i + 1 : -1};
  }
  for (int64_t i = 0; i + 1 < count; ++i) offer(i, i + 1);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), is_behind);
    const Candidate best = heap_.back();
    heap_.pop_back();
    Part& left = parts_[best.left];
    Part& right = parts_[best.right];
    // A part that was merged away has no id of a token, so that its entries are out of date too.
    if (left.id != best.left_id || right.id != best.right_id || left.next != best.right) continue;
    left.id = best.merged;
    left.next = right.next;
    right.id = MergeTable::kNone;
    if (right.next >= 0) parts_[static_cast<size_t>(right.next)].previous = best.left;
    offer(left.previous, best.left);
    offer(best.left, left.next);
  }
  for (int64_t i = 0; i >= 0; i = parts_[static_cast<size_t>(i)].next) {
    ids.push_back(static_cast<uint16_t>(parts_[static_cast<size_t>(i)].id));
  }
}

}  // namespace assay::data
