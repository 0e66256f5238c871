// Follows a metrics.jsonl while another process writes it: which step was finished last, and when a
// resumed run wrote its first new step. Reads only what was appended since the last look.
#pragma once

#include <cstdint>
#include <string>

namespace assay::harness {

// Not thread-safe. Copes with a file that is not there yet, ends in half a line, shrinks or is
// replaced (a resume cuts it back to its checkpoint).
class MetricsWatch {
 public:
  // Lines that are there now are not new; nothing is counted from them.
  explicit MetricsWatch(std::string path);
  // The greatest step in the lines that appeared since the construction, 0 before the first.
  // `at_least`: lines of lesser steps are kept lines of a resumed run, not new ones.
  int64_t poll(int64_t at_least = 1);

 private:
  std::string path_;
  uint64_t inode_ = 0;
  uint64_t offset_ = 0;
  std::string partial_;
  int64_t last_step_ = 0;
};

}  // namespace assay::harness
