// A small training state whose numbers betray mistakes (index-coded tensors), and folders of it.
#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/fault_points.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "checkpoints/reader.h"
#include "checkpoints/writer.h"

namespace assay::checkpoints {

// Owns the bytes that StateParts borrows.
class SampleState {
 public:
  explicit SampleState(int64_t step = 10, int64_t rank_count = 1);
  SampleState(const SampleState&) = delete;
  SampleState& operator=(const SampleState&) = delete;

  StateParts parts;

  // The float at a flat index of a tensor of the model or the optimizer.
  void set_float(std::vector<TensorView>& tensors, const std::string& name, size_t index,
                 float value);
  TensorView add(const std::string& name, const std::string& dtype, std::vector<int64_t> shape,
                 const void* bytes, size_t count);

 private:
  std::deque<std::vector<unsigned char>> storage_;
};

CommitRequest request_for(const std::string& run_dir, const SampleState& state);

// Commits the sample state of that step and returns the checkpoint's folder.
std::string commit_sample(const std::string& run_dir, int64_t step);

void write_plain(const std::string& path, std::string_view text);

// Changes one byte of a file in place.
void flip_byte(const std::string& path, uint64_t offset, unsigned char mask = 0x01);

// Names in a folder that a finished save must not leave behind.
std::vector<std::string> litter_in(const std::string& run_dir);

class ArmedFaults {
 public:
  explicit ArmedFaults(const std::string& rules) { arm_faults(rules); }
  ~ArmedFaults() { disarm_faults(); }
  ArmedFaults(const ArmedFaults&) = delete;
  ArmedFaults& operator=(const ArmedFaults&) = delete;
};

// The message of the exception that a call must throw.
template <class Expected, class Call>
std::string thrown_message(const Call& call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace assay::checkpoints
