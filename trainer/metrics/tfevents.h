// TensorBoard event file (TFRecord framing, masked CRC-32C, Event/Summary protobuf by hand).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/files.h"

namespace assay::metrics {

struct Scalar {
  std::string_view tag;  // "train/loss"
  double value = 0;
};

// Writes events.out.tfevents.<seconds>.<host>.<pid>.0 in `folder`. Main thread only. Throws
// FileError. Values are single precision in this format; metrics.jsonl has the exact ones.
class TensorboardWriter {
 public:
  // `first_step` > 0 says that a run is resumed after that step: TensorBoard then drops what an
  // earlier file of the folder holds of later steps.
  explicit TensorboardWriter(const std::string& folder, int64_t first_step = 0);
  // One write for all of them.
  void append(int64_t step, std::span<const Scalar> scalars);
  void sync();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::unique_ptr<AppendFile> file_;
};

// The parts of the format.
namespace tfevents {

// CRC-32C (Castagnoli, RFC 3720), rotated and offset as TFRecord stores it.
uint32_t masked_crc32c(std::string_view bytes);
// length (8 bytes, little-endian), its masked CRC, payload, its masked CRC.
std::string record(std::string_view payload);
// Event{wall_time, file_version: "brain.Event:2"}, the first of every file.
std::string version_event(double wall_seconds);
// Event{wall_time, step, session_log{status: START}}.
std::string session_start_event(double wall_seconds, int64_t step);
// Event{wall_time, step, summary{value{tag, simple_value}}}.
std::string scalar_event(double wall_seconds, int64_t step, const Scalar& scalar);

}  // namespace tfevents

}  // namespace assay::metrics
