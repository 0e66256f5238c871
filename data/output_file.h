// A large file written from start to end and then made durable in one step: whoever sees it under
// its name sees all of it. Written under a temporary name beside its place. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/files.h"

namespace assay::data {

// Fault points "shard.open|write|fsync|close|rename|sync_parent". Throws FileError.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();  // removes the temporary file unless committed
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* bytes, size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  uint64_t written_bytes() const { return written_; }
  // Overwrites the first bytes (a header whose numbers are known at the end), then syncs, closes
  // and renames.
  void commit(std::string_view start = {});

 private:
  void flush();

  std::string path_;
  std::string temporary_;
  std::unique_ptr<FileWriter> writer_;
  std::string pending_;
  uint64_t written_ = 0;
  bool is_committed_ = false;
};

}  // namespace assay::data
