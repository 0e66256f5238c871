// Files of token ids: nanoGPT's (bare little-endian numbers) and llm.c's (a header, then numbers),
// told apart by the header's magic number. Mapped into memory, never read as a whole.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/files.h"
#include "data/file_facts.h"

namespace assay::data {

// Where the numbers of a file lie.
struct TokenLayout {
  bool has_header = false;   // llm.c's
  int64_t token_bytes = 2;   // 2 or 4
  int64_t header_bytes = 0;  // 0 or 1024
  int64_t count = 0;         // tokens
};

// llm.c's header: 256 int32, of which three are used. The magic number says how wide tokens are.
constexpr int64_t kTokenHeaderBytes = 1024;
constexpr int32_t kTokenMagic16 = 20240520;  // version 1, uint16
constexpr int32_t kTokenMagic32 = 20240801;  // version 7, uint32

// The layout that the first bytes (all, or at least kTokenHeaderBytes) and the size of a file
// stand for. `token_bits` is what the user says: 16, 32 or nothing; without it a file without a
// header has 16. Throws DataError naming the path, the sizes, and what the file looks like
// instead: an odd byte count, a count in the header that does not match, another width, a numpy or
// text file, the header of a model.
TokenLayout token_layout(std::span<const unsigned char> head, uint64_t file_bytes,
                         const std::string& path, std::optional<int64_t> token_bits);

// llm.c's header for `count` tokens of 2 bytes. Throws DataError if int32 does not hold the count.
std::string token_header(int64_t count, const std::string& path);

// What one pass over a file finds.
struct TokenFacts {
  std::string sha256;      // of the whole file
  int64_t largest = -1;    // -1: no tokens
  int64_t largest_at = 0;  // its first place
  // Of the file's 16-bit halves at even and at odd places, whatever the tokens' width.
  int64_t largest_even_half = -1;
  int64_t largest_odd_half = -1;
};

// Thread-safe once made. The file must not be shortened while it is open.
class TokenFile {
 public:
  // Throws DataError as token_layout, or if the file cannot be read.
  TokenFile(std::string path, std::optional<int64_t> token_bits);

  const std::string& path() const { return path_; }
  const TokenLayout& layout() const { return layout_; }
  int64_t size() const { return layout_.count; }
  uint64_t file_bytes() const { return map_.size(); }
  int64_t at(int64_t index) const;
  // inputs = tokens [first, first + n), targets = the same one further on.
  void read_window(int64_t first, std::span<int64_t> inputs, std::span<int64_t> targets) const;

  // Reads every byte once, or takes what an earlier pass left in the cache folder.
  TokenFacts facts() const;

 private:
  std::string path_;
  FileStamp stamp_;  // from before the map: what changes later is noticed
  MappedFile map_;
  TokenLayout layout_;
};

// Throws DataError if the facts show that the file holds tokens of another width, or ids that are
// not below `vocabulary` (0: unknown, only what no vocabulary reaches is refused): file, place,
// value and range are named.
void check_tokens(const TokenFile& file, const TokenFacts& facts, int64_t vocabulary);

}  // namespace assay::data
