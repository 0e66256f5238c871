// Labelled images held in memory, as they come out of a pair of IDX files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/idx.h"

namespace assay::data {

// Mean and standard deviation of x / 255, one channel.
struct PixelStatistics {
  float mean = 0;
  float stddev = 1;
};

constexpr int64_t kTenClasses = 10;  // MNIST, Fashion-MNIST and the digits alike

// Throws DataError unless there are as many labels as images and every label is in [0, 10), naming
// file, index, value and range.
void check_labels(const IdxArray& images, const IdxArray& labels);

// One channel; sample i is image i. Takes the bytes over.
std::unique_ptr<Dataset> make_idx_images(IdxArray images, IdxArray labels,
                                         const PixelStatistics& statistics);

}  // namespace assay::data
