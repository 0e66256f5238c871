// Which samples a rank used for which update: ids-rank<r>.jsonl, and a digest of ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/files.h"

namespace assay::metrics {

// SHA-256 over the ids in order, each as 8 bytes little-endian.
std::string ids_digest(std::span<const int64_t> ids);

// "ids-rank0.jsonl"
std::string ids_file_name(int64_t rank);

// Appends {"step":..,"epoch":..,"ids":[..]} lines. Main thread only. Throws FileError.
class IdsLedger {
 public:
  IdsLedger(const std::string& run_dir, int64_t rank);
  // `epoch` is the one that the update's samples come from.
  void append(int64_t step, int64_t epoch, std::span<const int64_t> ids);
  void sync();

 private:
  AppendFile file_;
};

}  // namespace assay::metrics
