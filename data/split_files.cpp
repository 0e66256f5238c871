#include "data/split_files.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fnmatch.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace assay::data {
namespace {

constexpr size_t kMostFiles = 1'000'000;  // a typing mistake, not a data set

struct Range {
  size_t open = 0;   // place of '{'
  size_t close = 0;  // place of '}'
  uint64_t first = 0;
  uint64_t last = 0;
  size_t width = 0;  // digits, with leading zeros
};

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The first {a..b} at or behind a place.
std::optional<Range> find_range(std::string_view pattern) {
  for (size_t open = pattern.find('{'); open != std::string_view::npos;
       open = pattern.find('{', open + 1)) {
    const size_t close = pattern.find('}', open);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view inner = pattern.substr(open + 1, close - open - 1);
    const size_t dots = inner.find("..");
    if (dots == std::string_view::npos) continue;
    const std::string_view first = inner.substr(0, dots);
    const std::string_view last = inner.substr(dots + 2);
    const auto first_number = is_digits(first) ? parse_uint64(first) : std::nullopt;
    const auto last_number = is_digits(last) ? parse_uint64(last) : std::nullopt;
    if (!first_number || !last_number) continue;
    return Range{open, close, *first_number, *last_number, first.size()};
  }
  return std::nullopt;
}

void expand_ranges(const std::string& pattern, const std::string& whole, std::string_view what,
                   std::vector<std::string>& names) {
  const std::optional<Range> range = find_range(pattern);
  if (!range) {
    names.push_back(pattern);
    return;
  }
  if (range->last < range->first || range->last - range->first >= kMostFiles) {
    throw DataError(cat("data set ", what, ": the pattern ", quoted(whole), " counts from ",
                        range->first, " to ", range->last, ", must count up, at most ", kMostFiles,
                        " files. Fix: --data_dir 'name-{000000..000146}.tar'"));
  }
  for (uint64_t number = range->first; number <= range->last; ++number) {
    std::string digits = std::to_string(number);
    if (digits.size() < range->width) digits.insert(0, range->width - digits.size(), '0');
    expand_ranges(pattern.substr(0, range->open) + digits + pattern.substr(range->close + 1), whole,
                  what, names);
    if (names.size() > kMostFiles) {
      throw DataError(cat("data set ", what, ": the pattern ", quoted(whole), " stands for more ",
                          "than ", kMostFiles, " files. Fix: narrow it"));
    }
  }
}

std::vector<std::string> names_in(const std::string& folder, std::string_view what) {
  try {
    return list_directory(folder);
  } catch (const FileError& error) {
    throw DataError(cat("data set ", what, ": ", error.what(), ". Fix: check --data_dir"));
  }
}

bool has_wildcard(std::string_view text) { return text.find_first_of("*?") != text.npos; }

void match_wildcards(const std::string& pattern, std::string_view what,
                     std::vector<std::string>& found) {
  const std::string folder = parent_path(pattern);
  const std::string name_pattern = file_name(pattern);
  if (has_wildcard(folder)) {
    throw DataError(cat("data set ", what, ": the pattern ", quoted(pattern),
                        " has '*' or '?' in its folder, they may stand in the file's name only. "
                        "Fix: name the folder"));
  }
  for (const std::string& name : names_in(folder.empty() ? "." : folder, what)) {
    const std::string path = folder.empty() ? name : join_path(folder, name);
    if (::fnmatch(name_pattern.c_str(), name.c_str(), FNM_PERIOD) == 0 && is_regular_file(path)) {
      found.push_back(path);
    }
  }
}

// The words of a file's name: "fineweb_val_000.bin" -> fineweb, val, 000, bin.
bool is_held_out(const std::string& name) {
  constexpr auto kWords =
      std::to_array<std::string_view>({"val", "valid", "validation", "eval", "test"});
  size_t begin = 0;
  while (begin <= name.size()) {
    const size_t end = std::min(name.find_first_of("-_.", begin), name.size());
    const std::string_view word = std::string_view(name).substr(begin, end - begin);
    if (std::find(kWords.begin(), kWords.end(), word) != kWords.end()) return true;
    begin = end + 1;
  }
  return false;
}

std::vector<std::string> files_in(const std::string& folder, std::string_view ending,
                                  std::string_view what) {
  std::vector<std::string> paths;
  for (const std::string& name : names_in(folder, what)) {
    const std::string path = join_path(folder, name);
    if (!name.starts_with('.') && name.ends_with(ending) && is_regular_file(path)) {
      paths.push_back(path);
    }
  }
  return paths;
}

// The same pattern with the last "train" of its name replaced by "val"; nothing if it has none.
std::optional<std::string> eval_pattern(const std::string& pattern) {
  const std::string name = file_name(pattern);
  const size_t found = name.rfind("train");
  if (found == std::string::npos) return std::nullopt;
  std::string other = name;
  other.replace(found, std::string_view("train").size(), "val");
  const std::string folder = parent_path(pattern);
  return folder.empty() ? other : join_path(folder, other);
}

// What exists of a pattern: ranges need not be complete here, and nothing at all is fine.
std::vector<std::string> existing_of(const std::string& pattern, std::string_view what) {
  std::vector<std::string> names;
  expand_ranges(pattern, pattern, what, names);
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (has_wildcard(name)) match_wildcards(name, what, found);
    if (is_regular_file(name)) found.push_back(name);
  }
  return found;
}

SplitFiles split_folder(const std::string& folder, std::string_view ending, std::string_view what) {
  SplitFiles files;
  const std::string train = join_path(folder, "train");
  const std::string val = join_path(folder, "val");
  if (is_directory(train)) {
    files.train = files_in(train, ending, what);
    if (is_directory(val)) files.eval = files_in(val, ending, what);
    if (files.train.empty()) {
      throw DataError(cat("data set ", what, ": ", train, " has no file *", ending,
                          ". Fix: --data_dir FOLDER with such files"));
    }
    return files;
  }
  for (std::string& path : files_in(folder, ending, what)) {
    (is_held_out(file_name(path)) ? files.eval : files.train).push_back(std::move(path));
  }
  if (!files.train.empty()) return files;
  throw DataError(cat("data set ", what, ": ", folder, " has no file *", ending,
                      " to train on, neither itself nor in train/ (", files.eval.size(),
                      " to hold out). Fix: --data_dir FOLDER with e.g. train", ending, " and val",
                      ending));
}

}  // namespace

bool is_pattern(std::string_view path) {
  return has_wildcard(path) || find_range(path).has_value();
}

std::vector<std::string> expand_pattern(const std::string& pattern, std::string_view what) {
  std::vector<std::string> names;
  expand_ranges(pattern, pattern, what, names);
  std::vector<std::string> found;
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    if (has_wildcard(name)) {
      match_wildcards(name, what, found);
    } else {
      (is_regular_file(name) ? found : missing).push_back(name);
    }
  }
  if (!missing.empty()) {
    throw DataError(cat("data set ", what, ": ", missing.size(), " of the ", names.size(),
                        " files of ", quoted(pattern), " do not exist, the first is ", missing[0],
                        ". Fix: check --data_dir and its numbers"));
  }
  if (found.empty()) {
    throw DataError(
        cat("data set ", what, ": no file matches ", quoted(pattern), ". Fix: check --data_dir"));
  }
  return found;
}

SplitFiles find_split_files(const std::string& directory, std::string_view ending,
                            std::string_view what) {
  if (directory.empty()) {
    throw ConfigError(cat("dataset ", what, " needs files *", ending,
                          ", and data_dir is empty. Fix: --data_dir FOLDER, FILE or "
                          "'FOLDER/name-{000..146}",
                          ending, "'"));
  }
  if (is_directory(directory)) return split_folder(directory, ending, what);
  SplitFiles files;
  if (is_regular_file(directory)) {
    files.train = {directory};
  } else if (is_pattern(directory)) {
    files.train = expand_pattern(directory, what);
  } else {
    throw DataError(cat("data_dir ", quoted(directory), " does not exist, must be a folder, a ",
                        "file *", ending, " or a pattern of such files. Fix: check --data_dir"));
  }
  if (const std::optional<std::string> held_out = eval_pattern(directory)) {
    files.eval = existing_of(*held_out, what);
  }
  return files;
}

}  // namespace assay::data
