// GPT-2's vocabulary files: encoder.json and vocab.bpe, parted by a NUL.
#include "base/error.h"
#include "base/text.h"
#include "data/bpe.h"
#include "tests/fuzz/fuzz_driver.h"

namespace assay::fuzz {
namespace {

// All 256 bytes in GPT-2's spelling and a few merges.
std::string vocabulary() {
  std::string json = "{";
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool is_itself =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const uint32_t code = is_itself ? byte : next++;
    std::string letter;
    if (code < 0x80) {
      if (code == '"' || code == '\\') letter = "\\";
      letter += static_cast<char>(code);
    } else {
      letter = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
    }
    json += cat("\"", letter, "\": ", byte, ", ");
  }
  return json + "\"ab\": 256, \"abab\": 257, \"<|endoftext|>\": 258}" + std::string(1, '\0') +
         "#version: 0.2\na b\nab ab\n";
}

void run(const std::string& input) {
  const size_t parting = std::min(input.find('\0'), input.size());
  const std::string merges = parting == input.size() ? "" : input.substr(parting + 1);
  const data::BpeVocabulary parsed = data::parse_bpe(input.substr(0, parting), merges);
  data::BpeMerger merger(parsed);
  for (const size_t length : {1, 7, 100}) {
    std::vector<uint16_t> ids;
    std::string piece;
    while (piece.size() < length) piece += "ab";
    merger.encode(piece, ids);
    std::string back;
    for (const uint16_t id : ids) back += parsed.tokens.at(id);
    if (back != piece) throw InternalError("the tokens do not give the text back");
  }
}

}  // namespace
}  // namespace assay::fuzz

int main(int count, char** words) {
  assay::fuzz::Target target;
  target.run = assay::fuzz::run;
  target.seeds = {assay::fuzz::vocabulary()};
  target.dictionary = {"\"ab\": 256", "a b\n", "ab ab\n", ": 0", ": -1",     ": 65536", "\\u0100",
                       "\xc4\xa0",    "{",     "}",       "[",   "#version", " "};
  return assay::fuzz::run_target(target, count, words);
}
