#include "platform/mountinfo.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace assay::platform {
namespace {

bool is_octal(char letter) { return letter >= '0' && letter <= '7'; }

// The kernel writes blank, tab, newline and backslash as \ooo.
std::string unescaped(std::string_view field) {
  std::string out;
  for (size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size() && is_octal(field[i + 1]) &&
        is_octal(field[i + 2]) && is_octal(field[i + 3])) {
      const int code = (field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 + (field[i + 3] - '0');
      out.push_back(static_cast<char>(code));
      i += 3;
    } else {
      out.push_back(field[i]);
    }
  }
  return out;
}

std::optional<MountEntry> parse_line(std::string_view line) {
  const std::vector<std::string> words = words_of(line);
  const auto dash = std::find(words.begin(), words.end(), "-");
  if (words.size() < 6 || dash == words.end() || dash - words.begin() < 6) return std::nullopt;
  const std::vector<std::string> tail(dash + 1, words.end());
  if (tail.empty()) return std::nullopt;
  MountEntry entry;
  entry.device_number = words[2];
  entry.root = unescaped(words[3]);
  entry.mount_point = unescaped(words[4]);
  entry.options = words[5];
  entry.file_system = tail[0];
  if (tail.size() >= 3) entry.source = unescaped(tail[1]);
  entry.super_options = tail.back();
  return entry;
}

}  // namespace

std::vector<MountEntry> parse_mountinfo(std::string_view text) {
  std::vector<MountEntry> entries;
  for (const std::string& line : split(text, '\n')) {
    std::optional<MountEntry> entry = parse_line(line);
    if (entry) entries.push_back(*std::move(entry));
  }
  return entries;
}

std::vector<MountEntry> read_mountinfo(const Roots& roots) {
  return parse_mountinfo(read_text(roots, "/proc/self/mountinfo").value_or(""));
}

bool has_option(std::string_view options, std::string_view option) {
  const std::vector<std::string> parts = split(options, ',');
  return std::find(parts.begin(), parts.end(), option) != parts.end();
}

}  // namespace assay::platform
