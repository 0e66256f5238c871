#include "data/survey.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace assay::data {
namespace {

void check_in_range(int64_t value, const char* what, const Dataset& dataset,
                    const std::string& place) {
  if (value >= 0 && value < dataset.spec().num_classes) return;
  throw DataError(cat(place, ": ", what, " is ", value, ", must be in [0, ",
                      dataset.spec().num_classes - 1, "]. Fix: correct the data"));
}

// Exact sums: 2^63 / 255^2 pixels fit.
struct ChannelSums {
  uint64_t sum = 0;
  uint64_t sum_of_squares = 0;
};

void add_pixels(std::span<const unsigned char> pixels, std::vector<ChannelSums>& channels) {
  const size_t per_channel = pixels.size() / channels.size();
  for (size_t i = 0; i < pixels.size(); ++i) {
    ChannelSums& channel = channels[i / per_channel];
    channel.sum += pixels[i];
    channel.sum_of_squares += uint64_t{pixels[i]} * pixels[i];
  }
}

void finish(const std::vector<ChannelSums>& channels, double pixels_each, SplitSurvey* survey) {
  for (const ChannelSums& channel : channels) {
    const double mean = static_cast<double>(channel.sum) / pixels_each;
    const double square = static_cast<double>(channel.sum_of_squares) / pixels_each;
    survey->mean.push_back(mean / 255);
    survey->stddev.push_back(std::sqrt(std::max(square - mean * mean, 0.0)) / 255);
  }
}

}  // namespace

SplitSurvey survey_split(const Dataset& dataset, const char* split_name) {
  const SampleSpec& spec = dataset.spec();
  const bool is_image = spec.feature_type == FeatureType::kUint8;
  std::vector<unsigned char> features(spec.feature_bytes());
  std::vector<int64_t> targets(static_cast<size_t>(spec.targets_per_sample));
  std::vector<ChannelSums> channels(is_image ? static_cast<size_t>(spec.feature_shape[0]) : 0);
  SplitSurvey survey;
  survey.samples = dataset.size();
  for (int64_t id = 0; id < dataset.size(); ++id) {
    dataset.read(id, features, targets);
    const std::string place = cat(split_name, " sample ", id);
    for (const int64_t target : targets) {
      check_in_range(target, "target", dataset, place);
      ++survey.targets[target];
    }
    if (is_image) add_pixels(features, channels);
    for (size_t at = 0; !is_image && at < features.size(); at += sizeof(int64_t)) {
      int64_t token = 0;
      std::memcpy(&token, features.data() + at, sizeof(token));
      check_in_range(token, "token", dataset, place);
    }
  }
  if (is_image && dataset.size() > 0) {
    const double pixels_each = static_cast<double>(features.size() / channels.size()) *
                               static_cast<double>(dataset.size());
    finish(channels, pixels_each, &survey);
  }
  return survey;
}

}  // namespace assay::data
