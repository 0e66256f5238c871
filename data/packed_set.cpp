#include "data/packed_set.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace assay::data {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw DataError(cat("packed shard ", path, " ", what,
                      ". Fix: put the shards of one data set, all of them and no others, into "
                      "the folder"));
}

bool have_same_samples(const PackedHeader& a, const PackedHeader& b) {
  return a.content == b.content && a.spec.feature_type == b.spec.feature_type &&
         a.spec.feature_shape == b.spec.feature_shape &&
         a.spec.targets_per_sample == b.spec.targets_per_sample &&
         a.spec.num_classes == b.spec.num_classes && a.spec.mean == b.spec.mean &&
         a.spec.stddev == b.spec.stddev;
}

}  // namespace

PackedSet::PackedSet(const std::vector<std::string>& paths, std::string_view split) {
  for (const std::string& path : paths) files_.emplace_back(path);
  int64_t total = 0;
  for (size_t i = 0; i < files_.size(); ++i) {
    const PackedHeader& header = files_[i].header();
    const std::string& path = files_[i].path();
    if (header.split != split) {
      refuse(path, cat("belongs to the split ", header.split, ", must be ", split));
    }
    if (header.shard != static_cast<int64_t>(i) ||
        header.num_shards != static_cast<int64_t>(files_.size())) {
      refuse(path, cat("is shard ", header.shard, " of ", header.num_shards, ", there are ",
                       files_.size(), " and shard ", i, " is expected here"));
    }
    if (header.first_sample != total) {
      refuse(path, cat("starts with sample ", header.first_sample, ", must be ", total));
    }
    total += header.num_samples;
    ends_.push_back(total);
  }
  if (!files_.empty()) check_same_kind(files_[0].header(), *this);
}

PackedSet::Place PackedSet::place_of(int64_t id) const {
  const auto file = std::upper_bound(ends_.begin(), ends_.end(), id) - ends_.begin();
  const int64_t before = file == 0 ? 0 : ends_[static_cast<size_t>(file) - 1];
  return {&files_.at(static_cast<size_t>(file)), id - before};
}

std::span<const unsigned char> PackedSet::sample(int64_t id, std::span<int64_t> targets) const {
  const Place place = place_of(id);
  return place.file->sample(place.index, targets);
}

int64_t PackedSet::target(int64_t id) const {
  const Place place = place_of(id);
  return place.file->first_target(place.index);
}

std::string PackedSet::origin(int64_t id) const {
  const Place place = place_of(id);
  return cat("packed shard ", place.file->path(), ": sample ", place.index);
}

void check_same_kind(const PackedHeader& header, const PackedSet& set) {
  for (const PackedFile& file : set.files()) {
    if (file.header().source_digest != header.source_digest) {
      refuse(file.path(),
             cat("was packed from the data with digest ", quoted(file.header().source_digest),
                 ", others from ", quoted(header.source_digest)));
    }
    if (!have_same_samples(file.header(), header)) {
      refuse(file.path(), "holds samples of another shape or type than others");
    }
  }
}

}  // namespace assay::data
