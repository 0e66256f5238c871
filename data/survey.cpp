#include "data/survey.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <thread>

#include "base/error.h"
#include "base/queue.h"
#include "base/text.h"

namespace assay::data {
namespace {

constexpr int64_t kBlockSamples = 64;      // what a thread takes at once
constexpr size_t kMostBrokenKept = 10000;  // a set that is all broken must not fill the memory

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
  for (size_t c = 0; c < channels.size(); ++c) {
    ChannelSums& channel = channels[c];
    for (const unsigned char pixel : pixels.subspan(c * per_channel, per_channel)) {
      channel.sum += pixel;
      channel.sum_of_squares += uint64_t{pixel} * pixel;
    }
  }
}

// What one thread has seen. Sums of whole numbers: the order of adding does not matter.
class Tally {
 public:
  Tally(const Dataset& dataset, std::string split_name)
      : dataset_(dataset),
        split_name_(std::move(split_name)),
        is_image_(dataset.spec().feature_type == FeatureType::kUint8),
        features_(dataset.spec().feature_bytes()),
        targets_(static_cast<size_t>(dataset.spec().targets_per_sample)),
        counts_(static_cast<size_t>(std::max<int64_t>(dataset.spec().num_classes, 0))),
        channels_(is_image_ ? static_cast<size_t>(dataset.spec().feature_shape[0]) : 0) {}

  // Throws DataError before anything of a broken sample is counted.
  void add(int64_t id) {
    dataset_.read(id, features_, targets_);
    const std::string place = cat(split_name_, " sample ", id);
    for (const int64_t target : targets_) check_in_range(target, "target", dataset_, place);
    for (size_t at = 0; !is_image_ && at < features_.size(); at += sizeof(int64_t)) {
      int64_t token = 0;
      std::memcpy(&token, features_.data() + at, sizeof(token));
      check_in_range(token, "token", dataset_, place);
    }
    for (const int64_t target : targets_) ++counts_[static_cast<size_t>(target)];
    if (is_image_) add_pixels(features_, channels_);
    ++num_good_;
  }

  void merge(const Tally& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    for (size_t i = 0; i < channels_.size(); ++i) {
      channels_[i].sum += other.channels_[i].sum;
      channels_[i].sum_of_squares += other.channels_[i].sum_of_squares;
    }
    num_good_ += other.num_good_;
  }

  void finish(SplitSurvey* survey) const {
    for (size_t target = 0; target < counts_.size(); ++target) {
      if (counts_[target] > 0) survey->targets[static_cast<int64_t>(target)] = counts_[target];
    }
    if (!is_image_ || num_good_ == 0) return;
    const double pixels_each =
        static_cast<double>(features_.size() / channels_.size()) * static_cast<double>(num_good_);
    for (const ChannelSums& channel : channels_) {
      const double mean = static_cast<double>(channel.sum) / pixels_each;
      const double square = static_cast<double>(channel.sum_of_squares) / pixels_each;
      survey->mean.push_back(mean / 255);
      survey->stddev.push_back(std::sqrt(std::max(square - mean * mean, 0.0)) / 255);
    }
  }

 private:
  const Dataset& dataset_;
  std::string split_name_;
  bool is_image_;
  std::vector<unsigned char> features_;
  std::vector<int64_t> targets_;
  std::vector<int64_t> counts_;
  std::vector<ChannelSums> channels_;
  int64_t num_good_ = 0;
};

// What a thread reports behind each block.
struct BlockEnd {
  int64_t samples = 0;
  std::vector<BrokenSample> broken;
  std::exception_ptr error;  // anything but a broken sample
};

class Survey {
 public:
  Survey(const Dataset& dataset, const char* split_name, const SurveyConfig& config)
      : config_(config) {
    survey_.samples = dataset.size();
    survey_.looked_at =
        config.max_samples > 0 ? std::min(config.max_samples, dataset.size()) : dataset.size();
    const int64_t blocks = (survey_.looked_at + kBlockSamples - 1) / kBlockSamples;
    const int64_t threads = std::max<int64_t>(1, std::min(config.num_threads, blocks));
    for (int64_t i = 0; i < threads; ++i) tallies_.emplace_back(dataset, split_name);
  }

  SplitSurvey run() {
    BoundedQueue<BlockEnd> ends(tallies_.size());
    std::vector<std::jthread> threads;
    std::exception_ptr error;
    for (Tally& tally : tallies_) {
      threads.emplace_back([this, &tally, &ends] { work(tally, ends); });
    }
    for (int64_t done = 0; done < survey_.looked_at && !error;) {
      BlockEnd end = *ends.pop();
      done += end.samples;
      error = end.error;
      survey_.num_broken += static_cast<int64_t>(end.broken.size());
      if (survey_.broken.size() < kMostBrokenKept) {
        std::move(end.broken.begin(), end.broken.end(), std::back_inserter(survey_.broken));
      }
      if (config_.on_broken == OnBroken::kThrow && !survey_.broken.empty()) break;
      if (config_.on_progress) {
        config_.on_progress(static_cast<uint64_t>(done), static_cast<uint64_t>(survey_.looked_at));
      }
    }
    ends.close();
    threads.clear();
    if (error) std::rethrow_exception(error);
    return finished();
  }

 private:
  // Evenly spread, first and last always among them.
  int64_t id_at(int64_t index) const {
    if (survey_.looked_at == survey_.samples || survey_.looked_at < 2) return index;
    const double step =
        static_cast<double>(survey_.samples - 1) / static_cast<double>(survey_.looked_at - 1);
    return std::min(survey_.samples - 1,
                    static_cast<int64_t>(std::llround(step * static_cast<double>(index))));
  }

  void work(Tally& tally, BoundedQueue<BlockEnd>& ends) {
    for (;;) {
      const int64_t first = next_.fetch_add(kBlockSamples);
      if (first >= survey_.looked_at) return;
      BlockEnd end{
          .samples = std::min(kBlockSamples, survey_.looked_at - first), .broken = {}, .error = {}};
      for (int64_t i = first; i < first + end.samples && !end.error; ++i) {
        try {
          tally.add(id_at(i));
        } catch (const DataError& error) {  // what this pass is there to find
          end.broken.push_back({id_at(i), error.what()});
        } catch (...) {  // thread boundary: run() rethrows it
          end.error = std::current_exception();
        }
      }
      if (!ends.push(std::move(end))) return;
    }
  }

  SplitSurvey finished() {
    std::sort(survey_.broken.begin(), survey_.broken.end(),
              [](const BrokenSample& a, const BrokenSample& b) { return a.id < b.id; });
    if (config_.on_broken == OnBroken::kThrow && !survey_.broken.empty()) {
      throw DataError(survey_.broken[0].what);
    }
    if (survey_.broken.size() > kMostBrokenListed) survey_.broken.resize(kMostBrokenListed);
    for (size_t i = 1; i < tallies_.size(); ++i) tallies_[0].merge(tallies_[i]);
    tallies_[0].finish(&survey_);
    return survey_;
  }

  const SurveyConfig& config_;
  SplitSurvey survey_;
  std::vector<Tally> tallies_;
  std::atomic<int64_t> next_{0};
};

}  // namespace

SplitSurvey survey_split(const Dataset& dataset, const char* split_name,
                         const SurveyConfig& config) {
  return Survey(dataset, split_name, config).run();
}

}  // namespace assay::data
