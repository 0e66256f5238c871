// Reads every sample of a split and counts what is in it: the facts that `assay data` shows.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "data/dataset.h"

namespace assay::data {

struct SplitSurvey {
  int64_t samples = 0;
  std::map<int64_t, int64_t> targets;  // class or token -> how often
  // Of x / 255 over all pixels, one entry a channel; empty for tokens or an empty split.
  std::vector<double> mean;
  std::vector<double> stddev;
};

// Throws DataError if a target or token lies outside [0, num_classes), naming index and value.
SplitSurvey survey_split(const Dataset& dataset, const char* split_name);

}  // namespace assay::data
