#include "harness/checksums.h"

#include <algorithm>
#include <map>
#include <sys/stat.h>
#include <tuple>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace assay::harness {
namespace {

constexpr size_t kDigestDigits = 64;

void list_below(const std::string& folder, const std::string& prefix,
                std::vector<std::string>& files) {
  for (const std::string& name : list_directory(folder)) {
    const std::string path = join_path(folder, name);
    struct stat facts {};
    if (lstat(path.c_str(), &facts) != 0) continue;  // removed meanwhile: then it is not there
    if (S_ISDIR(facts.st_mode)) {
      list_below(path, cat(prefix, name, "/"), files);
    } else {
      files.push_back(prefix + name);
    }
  }
}

bool is_plain_file(const std::string& path) {
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

std::string unescaped(std::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '\\' && i + 1 < name.size()) {
      ++i;
      out += name[i] == 'n' ? '\n' : name[i] == 'r' ? '\r' : name[i];
    } else {
      out += name[i];
    }
  }
  return out;
}

void refuse_escape(const std::string& name, const std::string& origin) {
  const std::vector<std::string> parts = split(name, '/');
  const bool is_inside =
      !name.empty() && std::none_of(parts.begin(), parts.end(), [](const auto& p) {
        return p.empty() || p == "." || p == "..";
      });
  if (!is_inside || name.find('\0') != std::string::npos) {
    throw ConfigError(cat(origin, " names ", assay::quoted(name),
                          ", which does not lie below the folder; nothing was checked. Fix: get "
                          "the folder again from where it was made"));
  }
}

std::map<std::string, std::string> read_sums(const std::string& origin) {
  std::map<std::string, std::string> sums;
  const std::string text = read_file(origin);
  int64_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    const bool is_escaped = line.starts_with('\\');
    if (is_escaped) line.remove_prefix(1);
    const std::string digest(line.substr(0, std::min(kDigestDigits, line.size())));
    const bool is_digest = digest.size() == kDigestDigits && hex_decode(digest).has_value();
    const bool has_name = line.size() > kDigestDigits + 2 && line[kDigestDigits] == ' ' &&
                          (line[kDigestDigits + 1] == ' ' || line[kDigestDigits + 1] == '*');
    if (!is_digest || !has_name) {
      throw ConfigError(cat(origin, " line ", number, " is ", assay::quoted(line.substr(0, 120)),
                            ", expected 64 hex digits, two spaces and a name"));
    }
    const std::string_view shown = line.substr(kDigestDigits + 2);
    const std::string name = is_escaped ? unescaped(shown) : std::string(shown);
    refuse_escape(name, origin);
    sums[name] = digest;
  }
  return sums;
}

}  // namespace

std::vector<std::string> list_files(const std::string& folder) {
  std::vector<std::string> files;
  list_below(folder, "", files);
  std::erase(files, kChecksumFile);
  std::erase(files, kFolderLockFile);
  std::sort(files.begin(), files.end());
  return files;
}

std::string checksum_line(std::string_view digest, std::string_view path) {
  std::string name;
  bool is_escaped = false;
  for (const char letter : path) {
    if (letter == '\\' || letter == '\n' || letter == '\r') {
      is_escaped = true;
      name += letter == '\n' ? "\\n" : letter == '\r' ? "\\r" : "\\\\";
    } else {
      name += letter;
    }
  }
  return cat(is_escaped ? "\\" : "", digest, "  ", name, "\n");
}

void write_checksums(const std::string& folder) {
  std::string text;
  for (const std::string& name : list_files(folder)) {
    const std::string path = join_path(folder, name);
    if (is_plain_file(path)) text += checksum_line(sha256_file_hex(path), name);
  }
  write_file_durably(join_path(folder, kChecksumFile), text, "report");
}

ChecksumResult verify_checksums(const std::string& folder) {
  const std::string origin = join_path(folder, kChecksumFile);
  if (!is_plain_file(origin)) {
    throw ConfigError(cat(assay::quoted(folder), " has no ", kChecksumFile,
                          ", so it is no finished acceptance folder. Fix: give the folder that "
                          "assay accept named at its end"));
  }
  std::map<std::string, std::string> sums = read_sums(origin);
  ChecksumResult result;
  using Kind = ChecksumFinding::Kind;
  for (const std::string& name : list_files(folder)) {
    const auto expected = sums.find(name);
    const std::string path = join_path(folder, name);
    if (expected == sums.end()) {
      result.findings.push_back({Kind::kExtra, name, "is not in SHA256SUMS"});
      continue;
    }
    if (!is_plain_file(path)) {
      result.findings.push_back({Kind::kChanged, name, "is no longer a plain file"});
    } else {
      const std::string digest = sha256_file_hex(path);
      ++result.checked_files;
      result.checked_bytes += file_bytes(path);
      if (digest != expected->second) {
        result.findings.push_back(
            {Kind::kChanged, name, cat("SHA-256 is ", digest, ", expected ", expected->second)});
      }
    }
    sums.erase(expected);
  }
  for (const auto& [name, digest] : sums) {
    result.findings.push_back({Kind::kMissing, name, "is in SHA256SUMS but not in the folder"});
  }
  std::sort(result.findings.begin(), result.findings.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return result;
}

}  // namespace assay::harness
