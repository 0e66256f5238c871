// Small text tools: concatenation, locale-independent numbers, spelling help. No I/O.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Shortest decimal text that reads back as the same double; independent of the locale.
// Non-finite values give "nan", "inf" and "-inf".
std::string number_text(double value);

namespace text_detail {
inline void append(std::string& out, std::string_view part) { out.append(part); }
inline void append(std::string& out, const char* part) { out.append(part); }
inline void append(std::string& out, char part) { out.push_back(part); }
inline void append(std::string& out, bool part) { out.append(part ? "true" : "false"); }
inline void append(std::string& out, double part) { out.append(number_text(part)); }
inline void append(std::string& out, float part) { append(out, static_cast<double>(part)); }
template <std::integral Integer>
void append(std::string& out, Integer part) {
  out.append(std::to_string(part));
}
}  // namespace text_detail

// cat("step ", 3, " loss ", 0.5): one string out of text and numbers.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (text_detail::append(out, parts), ...);
  return out;
}

// C99 hexadecimal floating point ("0x1.8p+1"), exact, independent of the locale; "nan", "inf",
// "-inf".
std::string hex_float(double value);
// Reads what hex_float or number_text wrote, and other C99 hexadecimal forms of a double's value
// ("0x1.8000p+1"); nothing if the text is anything else or out of range.
std::optional<double> parse_hex_float(std::string_view text);

// The whole text must be one finite number: no spaces, no '+', no trailing characters, '.' as
// decimal point; nothing if it is anything else or out of range.
std::optional<int64_t> parse_int64(std::string_view text);
std::optional<uint64_t> parse_uint64(std::string_view text);
std::optional<double> parse_double(std::string_view text);

// Lower-case hexadecimal of bytes, and back (nothing if the text is not pairs of hex digits).
std::string hex_encode(std::span<const unsigned char> bytes);
std::optional<std::vector<unsigned char>> hex_decode(std::string_view text);

// The candidate nearest to `word` by Damerau-Levenshtein distance, if it is near enough to be a
// likely misspelling (at most 1 + length/4 edits).
std::optional<std::string> nearest_spelling(std::string_view word,
                                            std::span<const std::string> candidates);

// Text with control characters and bytes that are not UTF-8 escaped: one line, safe on a terminal.
std::string escaped(std::string_view text);
// Text in double quotes with control characters, quotes and backslashes escaped: safe to show.
std::string quoted(std::string_view text);
// Exact matches, so that argument-dependent lookup does not prefer std::quoted from <iomanip>.
inline std::string quoted(const std::string& text) { return quoted(std::string_view(text)); }
inline std::string quoted(const char* text) { return quoted(std::string_view(text)); }
inline std::string quoted(std::string& text) { return quoted(std::string_view(text)); }

std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
std::string trimmed(std::string_view text);

// "1.5 GB" (powers of 1000) and "1 h 02 min", "3.4 s", "12 ms".
std::string bytes_text(uint64_t bytes);
std::string duration_text(double seconds);

// True if the bytes are valid UTF-8 (no surrogates, no overlong forms).
bool is_valid_utf8(std::string_view text);

}  // namespace assay
