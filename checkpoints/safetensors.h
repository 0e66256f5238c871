// The safetensors container: reading with hostile-input checks, writing with checksums on the way.
// Format: https://github.com/huggingface/safetensors (u64 header length, JSON header, raw bytes).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace assay::checkpoints {

// A tensor in host memory, contiguous, little-endian. Borrowed: the bytes must outlive the use.
struct TensorView {
  std::string name;
  std::string dtype;  // safetensors' names: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL
  std::vector<int64_t> shape;
  const void* bytes = nullptr;
  uint64_t byte_count = 0;
};

// Bytes an element of a dtype; 0 for an unknown name.
uint64_t dtype_bytes(std::string_view dtype);

struct TensorChecksum {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t byte_count = 0;
  std::string xxh3;  // XXH3-128 of the tensor's bytes
};

struct WrittenFile {
  std::string name;  // within the checkpoint folder
  uint64_t bytes = 0;
  std::string xxh3;  // of the whole file
  std::vector<TensorChecksum> tensors;
};

// Writes tensors in the given order (data 8-byte aligned by the padded header), syncs and closes.
// Throws FileError.
WrittenFile write_safetensors(const std::string& path, const std::vector<TensorView>& tensors,
                              const std::map<std::string, std::string>& metadata,
                              std::string_view fault_site);

// A file open for reading; views point into its map and live as long as it does.
class SafetensorsFile {
 public:
  // Checks the whole header before anything is used: length, JSON, dtypes, shapes (overflow),
  // offsets (order, overlap, holes, end of file), names. Throws CheckpointError naming the file
  // and the tensor; pickles (.pt, zip) are refused with the one-line Python conversion.
  explicit SafetensorsFile(const std::string& path);
  const std::vector<TensorView>& tensors() const { return tensors_; }  // in file order
  const TensorView* find(std::string_view name) const;                 // nullptr: not there
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }
  uint64_t bytes() const { return map_.size(); }
  const unsigned char* data() const { return map_.data(); }  // the whole file

 private:
  std::string path_;
  MappedFile map_;
  std::vector<TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace assay::checkpoints
