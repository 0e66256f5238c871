// Byte-pair encoding as GPT-2 has it: the vocabulary from its two files, and the merging of one
// piece of text. How a text is split into pieces is not its business.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::data {

// Which two neighbours merge into what. A merged id is also the merge's rank: smaller goes first.
// Open addressing; immutable once filled.
class MergeTable {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  explicit MergeTable(size_t capacity);
  // False if the pair is there already.
  bool insert(uint32_t left, uint32_t right, uint32_t merged);
  uint32_t find(uint32_t left, uint32_t right) const {  // kNone: they do not merge
    const uint64_t key = key_of(left, right);
    for (size_t slot = slot_of(key);; slot = (slot + 1) & mask_) {
      if (slots_[slot].key == key) return slots_[slot].merged;
      if (slots_[slot].merged == kNone) return kNone;
    }
  }

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t merged = kNone;
  };
  static uint64_t key_of(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }
  size_t slot_of(uint64_t key) const {
    return static_cast<size_t>((key * 0x9e3779b97f4a7c15ULL) >> shift_);
  }
  std::vector<Slot> slots_;
  size_t mask_ = 0;
  int shift_ = 0;
};

struct BpeVocabulary {
  std::vector<std::string> tokens;       // id -> bytes
  std::array<uint32_t, 256> byte_ids{};  // the id of each single byte
  MergeTable merges{0};
  int64_t end_of_text = -1;  // the id of "<|endoftext|>"
};

// From the content of encoder.json (token, in GPT-2's printable spelling, to id) and vocab.bpe (one
// merge a line, in order). Throws DataError naming file and line or token: no JSON object, ids that
// are not 0..n-1, bytes or merged tokens without an id, merges out of order.
BpeVocabulary parse_bpe(std::string_view encoder_json, std::string_view merges);

// Merges the bytes of one piece until nothing merges: the pair of the lowest rank first, the
// leftmost of equal ones; appends the ids. O(n log n). Thread-compatible: keeps its buffers.
class BpeMerger {
 public:
  explicit BpeMerger(const BpeVocabulary& vocabulary) : vocabulary_(vocabulary) {}
  void encode(std::string_view piece, std::vector<uint16_t>& ids);

 private:
  void encode_short(std::string_view piece, std::vector<uint16_t>& ids);
  void encode_long(std::string_view piece, std::vector<uint16_t>& ids);

  struct Candidate {
    uint32_t merged = 0;
    uint32_t left = 0;  // places in parts_
    uint32_t right = 0;
    uint32_t right_id = 0;  // at the time of the entry: tells whether it is out of date
    uint32_t left_id = 0;
  };
  struct Part {
    uint32_t id = 0;
    int64_t previous = -1;
    int64_t next = -1;
  };
  const BpeVocabulary& vocabulary_;
  std::vector<uint32_t> ids_;
  std::vector<uint32_t> ranks_;
  std::vector<Part> parts_;
  std::vector<Candidate> heap_;
};

}  // namespace assay::data
