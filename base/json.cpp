#include "base/json.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace assay {
namespace {

using Json = nlohmann::json;

struct Document {
  std::string_view text;  // without a byte-order mark
  const std::string& origin;
  const JsonRules& rules;
};

// Reports the place of a byte offset as a person counts: lines and columns from one, a column is
// one character of UTF-8.
[[noreturn]] void refuse_json(const Document& document, size_t offset, const std::string& problem) {
  const std::string_view before = document.text.substr(0, std::min(offset, document.text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::string_view in_line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  const auto column = 1 + std::count_if(in_line.begin(), in_line.end(), [](char letter) {
                        return (static_cast<unsigned char>(letter) & 0xC0) != 0x80;
                      });
  throw ConfigError(cat(escaped(document.origin), " is not valid JSON at line ", line, ", column ",
                        column, ": ", problem));
}

// Where the parser is, shared by all copies of its input iterator.
class TrackedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackedIterator(const char* at, size_t* num_taken) : at_(at), num_taken_(num_taken) {}
  reference operator*() const { return *at_; }
  TrackedIterator& operator++() {
    ++at_;
    ++*num_taken_;
    return *this;
  }
  TrackedIterator operator++(int) {
    TrackedIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const TrackedIterator& other) const { return at_ == other.at_; }
  bool operator!=(const TrackedIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* num_taken_;
};

// The last character before `offset` that is neither space nor comment, 0 if there is none.
char last_significant(const Document& document, size_t offset) {
  const std::string_view text = document.text.substr(0, std::min(offset, document.text.size()));
  char last = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
      last = '"';
    } else if (document.rules.allow_comments && text.substr(i).starts_with("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (document.rules.allow_comments && text.substr(i).starts_with("/*")) {
      const size_t end = text.find("*/", i + 2);
      i = end == std::string_view::npos ? text.size() : end + 1;
    } else if (std::string_view(" \t\r\n").find(text[i]) == std::string_view::npos) {
      last = text[i];
    }
  }
  return last;
}

// The word of letters and signs around `offset`.
std::string_view word_at(std::string_view text, size_t offset) {
  const auto is_word = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '-' ||
           letter == '+';
  };
  constexpr size_t kLongestWord = 32;
  size_t first = std::min(offset, text.size());
  while (first > 0 && offset - first < kLongestWord && is_word(text[first - 1])) --first;
  size_t end = first;
  while (end < text.size() && end - first < kLongestWord && is_word(text[end])) ++end;
  return text.substr(first, end - first);
}

bool is_nonfinite_word(std::string_view word) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"NaN", "nan", "NAN", "Infinity", "infinity", "Inf", "inf", "INF"});
  if (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

// nlohmann's words without its prefix "[...] parse error at line 1, column 2: syntax error ".
std::string parser_words(std::string_view what) {
  for (const std::string_view lead : {"column ", ": ", "syntax error "}) {
    const size_t found = what.find(lead);
    if (found != std::string_view::npos) what.remove_prefix(found + lead.size());
  }
  constexpr size_t kLongest = 300;
  const bool is_cut = what.size() > kLongest;
  return cat(escaped(what.substr(0, kLongest)), is_cut ? " ..." : "");
}

// Builds the value while it is parsed, so that depth and double keys are seen in time.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  StrictBuilder(const Document& document, const size_t* num_taken)
      : document_(document), num_taken_(num_taken) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { throw InternalError("binary value in JSON text"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    if (levels_.back().value->contains(value)) {
      const std::string path = dotted_path(value);
      refuse_json(document_, key_offset(),
                  cat("key ", quoted(path),
                      " is given twice. "
                      "Fix: remove one of the two"));
    }
    levels_.back().key = std::move(value);
    return true;
  }

  // `num_read` counts the character that was refused, also when that is the end of the text.
  bool parse_error(std::size_t num_read, const std::string& token,
                   const nlohmann::detail::exception& error) override {
    constexpr int kOutOfRange = 406;
    if (error.id == kOutOfRange) {
      refuse_json(document_, num_read - std::min(num_read, token.size()),
                  cat(token, " is out of the range of a double (about 1.8e308)"));
    }
    refuse_syntax(num_read == 0 ? 0 : num_read - 1, error);
  }

 private:
  struct Level {
    Json* value;
    std::string key;  // the one being filled, in an object
  };

  template <class Value>
  bool add(Value&& value) {
    place(Json(std::forward<Value>(value)));
    return true;
  }

  Json* place(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (level.value->is_array()) {
      level.value->push_back(std::move(value));
      return &level.value->back();
    }
    Json& slot = (*level.value)[level.key];
    slot = std::move(value);
    return &slot;
  }

  bool open(Json container) {
    if (levels_.size() >= static_cast<size_t>(document_.rules.max_depth)) {
      refuse_json(document_, last_offset(),
                  cat("nested deeper than ", document_.rules.max_depth, " levels"));
    }
    levels_.push_back({place(std::move(container)), {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  std::string dotted_path(std::string_view last) const {
    std::string path;
    for (size_t i = 0; i + 1 < levels_.size(); ++i) {
      const Level& level = levels_[i];
      if (level.value->is_array()) {
        path += cat(level.value->size() - 1, '.');
      } else {
        path += cat(level.key, '.');
      }
    }
    return cat(path, last);
  }

  size_t last_offset() const { return *num_taken_ == 0 ? 0 : *num_taken_ - 1; }

  // Offset of the opening quote of the key that was just read.
  size_t key_offset() const {
    const std::string_view text = document_.text;
    for (size_t at = last_offset(); at > 0; --at) {
      if (text[at - 1] != '"') continue;
      size_t num_backslashes = 0;
      while (num_backslashes + 1 < at && text[at - 2 - num_backslashes] == '\\') ++num_backslashes;
      if (num_backslashes % 2 == 0) return at - 1;
    }
    return 0;
  }

  [[noreturn]] void refuse_syntax(size_t offset, const nlohmann::detail::exception& error) const {
    const std::string_view text = document_.text;
    const char found = offset < text.size() ? text[offset] : '\0';
    if ((found == '}' || found == ']') && last_significant(document_, offset) == ',') {
      refuse_json(
          document_, offset,
          cat("trailing comma before ", quoted(text.substr(offset, 1)), ". Fix: remove the comma"));
    }
    const std::string_view word = word_at(text, offset);
    if (is_nonfinite_word(word)) {
      refuse_json(document_, static_cast<size_t>(word.data() - text.data()),
                  cat(word, " is not a JSON number; a finite number is expected"));
    }
    if (found == '/' && !document_.rules.allow_comments) {
      refuse_json(document_, offset, "comments are not allowed in this file");
    }
    refuse_json(document_, offset, parser_words(error.what()));
  }

  const Document& document_;
  const size_t* num_taken_;
  Json root_;
  std::vector<Level> levels_;
};

// Offset of the first byte that is not UTF-8; only called when there is one.
size_t first_bad_byte(std::string_view text) {
  size_t good = 0;
  size_t bad = text.size();
  // Valid prefixes are not monotonic inside one character, so the search goes line by line.
  while (good < bad) {
    const size_t end = std::min(text.find('\n', good), text.size() - 1) + 1;
    if (!is_valid_utf8(text.substr(good, end - good))) break;
    good = end;
  }
  while (good < bad) {
    size_t length = 1;
    while (length <= 4 && !is_valid_utf8(text.substr(good, length))) ++length;
    if (length > 4) return good;
    good += length;
  }
  return good;
}

void require_utf8(const Document& document) {
  const std::string_view text = document.text;
  const std::string fix = "; expected UTF-8. Fix: save the file as UTF-8";
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    refuse_json(document, 0, cat("the text is UTF-16 (by its byte-order mark)", fix));
  }
  const size_t zero = text.find('\0');
  if (zero != std::string_view::npos) {
    refuse_json(document, zero, cat("a zero byte: the text is UTF-16, UTF-32 or binary", fix));
  }
  if (is_valid_utf8(text)) return;
  const size_t bad = first_bad_byte(text);
  const auto byte = static_cast<unsigned char>(text[bad]);
  refuse_json(document, bad,
              cat("byte 0x", hex_encode(std::span(&byte, 1)), " is not part of UTF-8 text", fix));
}

}  // namespace

Json parse_json(std::string_view text, const std::string& origin, const JsonRules& rules) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const Document document{text, origin, rules};
  require_utf8(document);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    refuse_json(document, 0, "the text is empty");
  }
  size_t num_taken = 0;
  StrictBuilder builder(document, &num_taken);
  const TrackedIterator first(text.data(), &num_taken);
  const TrackedIterator last(text.data() + text.size(), &num_taken);
  if (!Json::sax_parse(first, last, &builder, nlohmann::detail::input_format_t::json, true,
                       rules.allow_comments)) {
    throw InternalError(cat("parser stopped without a reason in ", quoted(origin)));
  }
  return builder.take();
}

}  // namespace assay
