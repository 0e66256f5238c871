// Reads pieces of a file by their place, without mapping it: a file that was shortened or a disk
// that fails gives an error, never a signal. Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace assay::data {

class FileReader {
 public:
  explicit FileReader(std::string path);  // throws DataError
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  // Fills all of `into`. Throws DataError naming file and place if the file ends before.
  void read_at(uint64_t offset, std::span<unsigned char> into) const;

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace assay::data
