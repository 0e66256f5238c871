// SHA256SUMS of an acceptance folder: written for every file but itself and the lock, in
// sha256sum's own format, and checked again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::harness {

inline constexpr std::string_view kChecksumFile = "SHA256SUMS";
inline constexpr std::string_view kFolderLockFile = ".lock";

// Regular files below `folder`, relative, sorted bytewise, without SHA256SUMS and the top-level
// lock. Links and devices are named too (nothing of ours is one), folders are not.
std::vector<std::string> list_files(const std::string& folder);

// Hashes every regular file and writes SHA256SUMS durably. Throws FileError.
void write_checksums(const std::string& folder);

struct ChecksumFinding {
  enum class Kind { kMissing, kChanged, kExtra };
  Kind kind = Kind::kMissing;
  std::string path;
  std::string detail;  // "SHA-256 is ..., expected ..."
};

struct ChecksumResult {
  int64_t checked_files = 0;
  uint64_t checked_bytes = 0;
  std::vector<ChecksumFinding> findings;  // sorted by path
};

// Reads every byte. Throws ConfigError if there is no SHA256SUMS, if a line of it is not readable,
// or if a name in it leaves the folder.
ChecksumResult verify_checksums(const std::string& folder);

// One line of the file: names with a newline or backslash are escaped as coreutils does it.
std::string checksum_line(std::string_view digest, std::string_view path);

}  // namespace assay::harness
