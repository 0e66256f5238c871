// A data set that says in every byte and target which sample it is, and can be told to fail.
#pragma once

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/text.h"
#include "data/dataset.h"

namespace assay::data {

// Features: 4 bytes, the id little-endian. Targets: 2, id and -id. valid_targets: id % 3.
class IndexCoded : public Dataset {
 public:
  explicit IndexCoded(int64_t size) : size_(size) {
    spec_.feature_shape = {1, 2, 2};
    spec_.targets_per_sample = 2;
    spec_.num_classes = size;
  }
  int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return spec_; }
  void read(int64_t id, std::span<unsigned char> features,
            std::span<int64_t> targets) const override {
    ++num_reads;
    if (id == broken_id) throw DataError(cat("index_coded: sample ", id, " is broken"));
    for (size_t i = 0; i < features.size(); ++i) {
      features[i] = static_cast<unsigned char>(id >> (8 * i));
    }
    targets[0] = id;
    targets[1] = -id;
  }
  int64_t valid_targets(int64_t id) const override { return id % 3; }

  mutable std::atomic<int64_t> num_reads = 0;
  int64_t broken_id = -1;

 private:
  int64_t size_;
  SampleSpec spec_;
};

}  // namespace assay::data
