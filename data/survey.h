// Reads the samples of a split and counts what is in them: the facts that `assay data` shows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace assay::data {

struct BrokenSample {
  int64_t id = 0;
  std::string what;
};

struct SplitSurvey {
  int64_t samples = 0;                 // of the split
  int64_t looked_at = 0;               // of them, evenly spread
  std::map<int64_t, int64_t> targets;  // class or token -> how often
  // Of x / 255 over all pixels, one entry a channel; empty for tokens or an empty split.
  std::vector<double> mean;
  std::vector<double> stddev;
  int64_t num_broken = 0;
  std::vector<BrokenSample> broken;  // the first kMostBrokenListed, by id
};
constexpr size_t kMostBrokenListed = 100;

enum class OnBroken { kThrow, kList };

struct SurveyConfig {
  int64_t max_samples = 0;  // 0: all
  int64_t num_threads = 1;  // the result does not depend on it
  OnBroken on_broken = OnBroken::kThrow;
  // Called by this thread now and then with samples done and in all. May be empty.
  std::function<void(uint64_t, uint64_t)> on_progress = {};
};

// A sample is broken if it cannot be read, or if a target or token lies outside [0, num_classes):
// then DataError is thrown, naming index and value, or the sample is listed.
SplitSurvey survey_split(const Dataset& dataset, const char* split_name,
                         const SurveyConfig& config = {});

}  // namespace assay::data
