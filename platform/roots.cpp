#include "platform/roots.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>
#include <sys/stat.h>

#include <dirent.h>

#include "base/text.h"

namespace assay::platform {

std::optional<std::string> read_text(const Roots& roots, std::string_view path) {
  std::ifstream file(cat(roots.prefix, path), std::ios::binary);
  if (!file) return std::nullopt;
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return std::nullopt;
  return trimmed(text);
}

std::optional<int64_t> read_integer(const Roots& roots, std::string_view path) {
  const std::optional<std::string> text = read_text(roots, path);
  if (!text) return std::nullopt;
  if (text->rfind("0x", 0) != 0) return parse_int64(*text);
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const std::from_chars_result result = std::from_chars(text->data() + 2, end, value, 16);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

std::vector<std::string> list_names(const Roots& roots, std::string_view path) {
  struct Closer {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  std::vector<std::string> names;
  const std::unique_ptr<DIR, Closer> folder(opendir(cat(roots.prefix, path).c_str()));
  if (!folder) return names;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool exists(const Roots& roots, std::string_view path) {
  struct stat status = {};
  return stat(cat(roots.prefix, path).c_str(), &status) == 0;
}

int64_t count_kernel_list(std::string_view list) {
  int64_t count = 0;
  for (const std::string& part : split(trimmed(list), ',')) {
    const size_t dash = part.find('-');
    const std::optional<int64_t> first = parse_int64(part.substr(0, dash));
    const std::optional<int64_t> last =
        dash == std::string::npos ? first : parse_int64(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first) return 0;
    count += *last - *first + 1;
  }
  return count;
}

std::optional<std::string> keyed_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == key) {
      return trimmed(line.substr(colon + 1));
    }
  }
  return std::nullopt;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  size_t at = 0;
  while ((at = line.find_first_not_of(" \t", at)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace assay::platform
