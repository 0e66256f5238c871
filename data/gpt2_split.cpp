#include "data/gpt2_split.h"

#include <string>

#ifdef ASSAY_HAS_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

#include "base/error.h"
#include "base/text.h"

namespace assay::data {

#ifdef ASSAY_HAS_PCRE2

namespace {

// GPT-2's rule (its encoder.py) with possessive quantifiers, which match the same and need no way
// back. White space is Unicode's property White_Space written out: PCRE2's \s also takes U+180E.
constexpr const char* kSpaces =
    "\\x{09}-\\x{0D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}"
    "\\x{205F}\\x{3000}";

std::string split_rule() {
  const std::string space = cat("[", kSpaces, "]");
  return cat("'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^", kSpaces, "\\p{L}\\p{N}]++|", space,
             "+(?![^", kSpaces, "])|", space, "++");
}

std::string pcre2_message(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Gpt2Splitter::Pattern {
  pcre2_code* code = nullptr;
  pcre2_match_data* match = nullptr;
  bool has_jit = false;

  ~Pattern() {
    pcre2_match_data_free(match);
    pcre2_code_free(code);
  }
};

bool has_gpt2_splitter() { return true; }

Gpt2Splitter::Gpt2Splitter() : pattern_(std::make_unique<Pattern>()) {
  const std::string rule = split_rule();
  int error = 0;
  PCRE2_SIZE place = 0;
  pattern_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rule.data()), rule.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &place, nullptr);
  if (pattern_->code == nullptr) {
    throw InternalError(
        cat("GPT-2's splitting rule does not compile at ", place, ": ", pcre2_message(error)));
  }
  // Refused where memory may not be made executable; matching then interprets, ten times slower.
  pattern_->has_jit = pcre2_jit_compile(pattern_->code, PCRE2_JIT_COMPLETE) == 0;
  pattern_->match = pcre2_match_data_create(1, nullptr);
  if (pattern_->match == nullptr) throw std::bad_alloc();
}

size_t Gpt2Splitter::piece_length(std::string_view text, size_t begin) {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  // The fast path of the library does no checks of its own: valid text is a precondition.
  const int count = pattern_->has_jit ? pcre2_jit_match(pattern_->code, subject, text.size(), begin,
                                                        0, pattern_->match, nullptr)
                                      : pcre2_match(pattern_->code, subject, text.size(), begin,
                                                    PCRE2_NO_UTF_CHECK, pattern_->match, nullptr);
  if (count < 1) {
    throw InternalError(cat("no piece of text at byte ", begin, ": ", pcre2_message(count)));
  }
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(pattern_->match);
  return ends[1] - begin;
}

#else

struct Gpt2Splitter::Pattern {};

bool has_gpt2_splitter() { return false; }

Gpt2Splitter::Gpt2Splitter() {
  throw ConfigError(
      "the tokenizer gpt2 needs PCRE2, which was not there when this assay was built. Fix: "
      "apt-get install libpcre2-dev and build again, or --tokenizer bytes");
}

size_t Gpt2Splitter::piece_length(std::string_view, size_t) {
  throw InternalError("a splitter without PCRE2");
}

#endif

Gpt2Splitter::~Gpt2Splitter() = default;

}  // namespace assay::data
