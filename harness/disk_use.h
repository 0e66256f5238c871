// What fills a disk: sizes of well-known places, and files that look like the same weights twice.
// Reads only; bounded in time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::harness {

struct PlaceUse {
  std::string path;
  uint64_t bytes = 0;
  bool is_cut = false;  // the time was over before everything was counted
};

struct DiskUse {
  std::vector<PlaceUse> places;  // largest first; empty ones left out
  std::vector<std::string>
      duplicate_weights;  // "A = B (1.5 GB)": same size, same first and last MiB
};

// Well-known places (package and model caches, logs, temporary files) and `more`. Folders on other
// file systems and links are not entered; each place may take `seconds_each`.
DiskUse measure_disk_use(const std::vector<std::string>& more, double seconds_each);

}  // namespace assay::harness
