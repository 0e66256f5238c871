// The samples of one tar shard in WebDataset's form: members whose names agree up to the first dot
// of the last part are one sample; .jpg, .jpeg or .png is its image, .cls or .json its label.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tar_index.h"

namespace assay::data {

struct TarSample {
  uint64_t offset = 0;  // of the image's bytes
  uint64_t bytes = 0;
  int64_t label = 0;
  std::string name;  // of the image's member
};

// In the archive's order. Members of other kinds are passed over. Throws DataError as tar_members,
// and naming archive and sample: an image without a label or the reverse, two images or two labels
// of one kind, a sample whose members are apart, a label that is no whole number >= 0.
std::vector<TarSample> tar_samples(const TarSource& source);

// The samples of a file, from the cache folder where an earlier pass left them.
struct TarShard {
  std::string path;
  uint64_t bytes = 0;
  std::vector<TarSample> samples;
  std::string index_digest;  // SHA-256 over names, places, sizes and labels; not over the pixels
};
TarShard read_tar_shard(const std::string& path);

}  // namespace assay::data
