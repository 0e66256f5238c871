// The image files in the tar shards of one split, in the order of the shards and of their members.
// Sample ids count through all shards, so that a position in the data is a place in a shard:
// any sample is read at once, whatever the number of shards, ranks and workers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/encoded_images.h"
#include "data/tar_samples.h"

namespace assay::data {

// Throws DataError as read_tar_shard. Reads the indexes of several shards at once.
std::vector<TarShard> read_tar_shards(const std::vector<std::string>& paths);

// Files are opened for each read: thousands of shards need no thousand descriptors.
std::unique_ptr<EncodedImages> make_tar_images(std::vector<TarShard> shards);

}  // namespace assay::data
