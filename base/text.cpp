#include "base/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace assay {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

int hex_value(char letter) {
  if (is_digit(letter)) return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

// "0x" and what follows, without a sign.
std::optional<double> parse_unsigned_hex(std::string_view text) {
  if (!text.starts_with("0x")) return std::nullopt;
  text.remove_prefix(2);
  // from_chars would also take a sign, "inf" and "nan" here.
  if (text.empty() || hex_value(text.front()) < 0) return std::nullopt;
  double value = 0;
  const char* end = text.data() + text.size();
  const std::from_chars_result result =
      std::from_chars(text.data(), end, value, std::chars_format::hex);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string fixed_text(double value, int num_decimals) {
  std::array<char, 400> buffer;  // the largest double has 309 digits before the point
  const std::to_chars_result result = std::to_chars(buffer.data(), buffer.data() + buffer.size(),
                                                    value, std::chars_format::fixed, num_decimals);
  return std::string(buffer.data(), result.ptr);
}

std::string two_digits(uint64_t value) { return cat(value < 10 ? "0" : "", value); }

// Optimal string alignment: insertions, deletions, replacements, swaps of neighbours.
size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<size_t> before_previous;
  std::vector<size_t> previous(right.size() + 1);
  std::vector<size_t> current(right.size() + 1);
  for (size_t j = 0; j <= right.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= left.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= right.size(); ++j) {
      const size_t cost = left[i - 1] == right[j - 1] ? 0 : 1;
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost});
      const bool is_swap =
          i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (is_swap) current[j] = std::min(current[j], before_previous[j - 2] + 1);
    }
    before_previous = previous;
    previous = current;
  }
  return previous[right.size()];
}

// Length of the valid UTF-8 sequence at the start of the text, 0 if there is none (Unicode 15,
// table 3-7).
size_t utf8_sequence_length(std::string_view text) {
  const auto byte = [&](size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (first == 0xE0) low = 0xA0;   // overlong
  if (first == 0xED) high = 0x9F;  // surrogates
  if (first == 0xF0) low = 0x90;   // overlong
  if (first == 0xF4) high = 0x8F;  // beyond U+10FFFF
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t index = 2; index < length; ++index) {
    if (byte(index) < 0x80 || byte(index) > 0xBF) return 0;
  }
  return length;
}

void append_byte_escape(std::string& out, unsigned char byte) {
  out += "\\x";
  out += kHexDigits[byte >> 4];
  out += kHexDigits[byte & 15];
}

void append_escaped(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_sequence_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    // U+0080..U+009F are control characters too; terminals obey them.
    const bool is_c1 = length == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
    if (first == '\n') {
      out += "\\n";
    } else if (first == '\r') {
      out += "\\r";
    } else if (first == '\t') {
      out += "\\t";
    } else if (length == 0 || first < 0x20 || first == 0x7F) {
      append_byte_escape(out, first);
    } else if (is_c1) {
      append_byte_escape(out, first);
      append_byte_escape(out, static_cast<unsigned char>(text[1]));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
}

}  // namespace

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer;  // 24 characters are the longest shortest form
  const std::to_chars_result result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return std::string(buffer.data(), result.ptr);
}

std::string hex_float(double value) {
  if (!std::isfinite(value)) return number_text(value);
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  const auto biased_exponent = static_cast<int>((bits >> 52) & 0x7FF);
  const int exponent = (bits << 1) == 0 ? 0 : std::max(biased_exponent, 1) - 1023;
  std::string out = std::signbit(value) ? "-0x" : "0x";
  out += biased_exponent == 0 ? '0' : '1';
  if (mantissa != 0) out += '.';
  for (; mantissa != 0; mantissa = (mantissa << 4) & ((uint64_t{1} << 52) - 1)) {
    out += kHexDigits[mantissa >> 48];
  }
  out += cat('p', exponent < 0 ? '-' : '+', std::abs(exponent));
  return out;
}

std::optional<double> parse_hex_float(std::string_view text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  const bool is_negative = text.starts_with('-');
  const std::string_view magnitude = is_negative ? text.substr(1) : text;
  if (!magnitude.starts_with("0x")) return parse_double(text);
  const std::optional<double> value = parse_unsigned_hex(magnitude);
  if (!value) return std::nullopt;
  return is_negative ? -*value : *value;
}

std::optional<int64_t> parse_int64(std::string_view text) { return parse_whole<int64_t>(text); }

std::optional<uint64_t> parse_uint64(std::string_view text) { return parse_whole<uint64_t>(text); }

std::optional<double> parse_double(std::string_view text) {
  const std::optional<double> value = parse_whole<double>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::string hex_encode(std::span<const unsigned char> bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const unsigned char byte : bytes) {
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
  }
  return out;
}

std::optional<std::vector<unsigned char>> hex_decode(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<unsigned char> bytes;
  bytes.reserve(text.size() / 2);
  for (size_t index = 0; index < text.size(); index += 2) {
    const int high = hex_value(text[index]);
    const int low = hex_value(text[index + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<unsigned char>(high * 16 + low));
  }
  return bytes;
}

std::optional<std::string> nearest_spelling(std::string_view word,
                                            std::span<const std::string> candidates) {
  const size_t limit = 1 + word.size() / 4;
  std::optional<std::string> nearest;
  size_t nearest_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const size_t shorter = std::min(word.size(), candidate.size());
    const size_t longer = std::max(word.size(), candidate.size());
    if (longer - shorter >= nearest_distance) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance >= nearest_distance) continue;
    nearest_distance = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string escaped(std::string_view text) {
  std::string out;
  append_escaped(out, text);
  return out;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t plain = std::min(text.find_first_of("\"\\"), text.size());
    append_escaped(out, text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    out += '\\';
    out += text.front();
    text.remove_prefix(1);
  }
  out += '"';
  return out;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (size_t index = 0; index < parts.size(); ++index) {
    if (index > 0) out += separator;
    out += parts[index];
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  const size_t last = text.find_last_not_of(kSpace);
  return std::string(text.substr(first, last - first + 1));
}

std::string bytes_text(uint64_t bytes) {
  if (bytes < 1000) return cat(bytes, " B");
  constexpr std::array<std::string_view, 6> kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  // 999.95 would be shown as 1000.0.
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return cat(fixed_text(value, 1), " ", kUnits[unit]);
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds)) return number_text(seconds);
  if (seconds < 0) return cat("-", duration_text(-seconds));
  if (seconds < 0.0009995) return cat(fixed_text(seconds * 1e6, 0), " us");
  if (seconds < 0.9995) return cat(fixed_text(seconds * 1e3, 0), " ms");
  if (seconds < 59.95) return cat(fixed_text(seconds, 1), " s");
  constexpr double kLongest = 1e15;  // beyond it the conversion to an integer is not safe
  const auto whole = static_cast<uint64_t>(std::llround(std::min(seconds, kLongest)));
  if (whole < 3600) return cat(whole / 60, " min ", two_digits(whole % 60), " s");
  const uint64_t minutes = (whole + 30) / 60;
  if (minutes < 24 * 60) return cat(minutes / 60, " h ", two_digits(minutes % 60), " min");
  const uint64_t hours = (minutes + 30) / 60;
  return cat(hours / 24, " d ", two_digits(hours % 24), " h");
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace assay
