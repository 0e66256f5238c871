#include "harness/report/escape.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace assay::harness {
namespace {

void append_byte(std::string& out, unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\x";
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

// Bytes of the UTF-8 sequence that starts here; 0 if it is none.
size_t sequence_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (text.size() < length || !is_valid_utf8(text.substr(0, length))) return 0;
  return length;
}

// C1 controls (U+0080..U+009F) and the marks that turn the direction of text around.
bool is_hidden_sequence(std::string_view sequence) {
  if (sequence.size() == 2) {
    return sequence[0] == '\xc2' && static_cast<unsigned char>(sequence[1]) < 0xa0;
  }
  if (sequence.size() != 3 || sequence[0] != '\xe2') return false;
  const auto middle = static_cast<unsigned char>(sequence[1]);
  const auto last = static_cast<unsigned char>(sequence[2]);
  const bool is_embedding = middle == 0x80 && last >= 0xaa && last <= 0xae;  // U+202A..202E
  const bool is_isolate = middle == 0x81 && last >= 0xa6 && last <= 0xa9;    // U+2066..2069
  return is_embedding || is_isolate;
}

}  // namespace

std::string visible_text(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = sequence_length(text.substr(i));
    if (byte == '\n' || byte == '\t' || byte == '\r') {
      out += ' ';
      ++i;
    } else if (length == 0 || byte < 0x20 || byte == 0x7f ||
               is_hidden_sequence(text.substr(i, length))) {
      append_byte(out, byte);
      ++i;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  return out;
}

std::string markup_escaped(std::string_view text) {
  std::string out;
  for (const char letter : visible_text(text)) {
    switch (letter) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += letter;
    }
  }
  return out;
}

std::string markdown_escaped(std::string_view text) {
  constexpr std::string_view kSpecial = "\\`*_{}[]()#+!|~$";
  std::string out;
  for (const char letter : visible_text(text)) {
    if (letter == '<') {
      out += "&lt;";
    } else if (letter == '>') {
      out += "&gt;";
    } else if (letter == '&') {
      out += "&amp;";
    } else {
      if (kSpecial.find(letter) != std::string_view::npos) out += '\\';
      out += letter;
    }
  }
  return out;
}

std::string shown_number(double value, int digits) {
  if (!std::isfinite(value)) return number_text(value);
  if (value == 0) return "0";
  if (std::abs(value) >= 1e15 || std::abs(value) < 1e-4) {
    std::array<char, 64> buffer{};
    const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                      std::chars_format::scientific, digits - 1);
    return std::string(buffer.data(), result.ptr);
  }
  const int whole = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  const double scale = std::pow(10.0, std::max(digits - whole, 0));
  return number_text(std::round(value * scale) / scale);
}

}  // namespace assay::harness
