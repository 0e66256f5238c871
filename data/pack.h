// Writes a data set as packed shards.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace assay::data {

struct PackRequest {
  std::string output_dir;
  int64_t shard_samples = 0;  // 0: as many as give shards of about 1 GiB
  bool is_original = false;   // image files: their own bytes, not the pixels
  int64_t num_threads = 1;    // that read samples; the output is the same
  bool may_overwrite = false;
  // Called by this thread now and then with samples done and in all. May be empty.
  std::function<void(uint64_t, uint64_t)> on_progress = {};
};

struct PackedShard {
  SourceFile file;
  int64_t samples = 0;
};

// Writes <split>-<shard>.packed for train and val, in the order of the ids; each file is complete
// or not there. Throws ConfigError if files would be overwritten or mixed with others, DataError
// for samples that cannot be read and files that cannot be written.
std::vector<PackedShard> pack_data(const OpenedData& data, const PackRequest& request);

}  // namespace assay::data
