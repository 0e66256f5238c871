// Generated samples that say which one they are, so that a mixed-up order betrays itself. They cost
// next to nothing to make: a run on them shows what a step takes without storage.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "data/mix64.h"
#include "data/sources.h"

namespace assay::data {
namespace {

constexpr int64_t kTrainPerEval = 10;  // a tenth as many samples more, for evaluation

// Image i: its first 8 pixels are i, little-endian; pixels 8 g .. 8 g + 7 are the bytes of a mix of
// (i, g). Label i % classes. Ids of this split start at `first`.
class SyntheticImages : public Dataset {
 public:
  SyntheticImages(SampleSpec spec, int64_t first, int64_t size)
      : spec_(std::move(spec)), first_(first), size_(size) {}
  int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return spec_; }
  void read(int64_t id, std::span<unsigned char> features,
            std::span<int64_t> targets) const override {
    check_read(*this, id, features, targets);
    const auto code = static_cast<uint64_t>(first_ + id);
    for (size_t begin = 0; begin < features.size(); begin += 8) {
      uint64_t word = begin == 0 ? code : mix64(code ^ mix64(begin + kMixIncrement));
      const size_t end = std::min(begin + 8, features.size());
      for (size_t i = begin; i < end; ++i, word >>= 8) {
        features[i] = static_cast<unsigned char>(word);
      }
    }
    targets[0] = (first_ + id) % spec_.num_classes;
  }

 private:
  SampleSpec spec_;
  int64_t first_;
  int64_t size_;
};

// Token t of sample i is (i * T + t) % vocabulary: the stream just counts.
class SyntheticTokens : public Dataset {
 public:
  SyntheticTokens(SampleSpec spec, int64_t first, int64_t size)
      : spec_(std::move(spec)), first_(first), size_(size) {}
  int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return spec_; }
  void read(int64_t id, std::span<unsigned char> features,
            std::span<int64_t> targets) const override {
    check_read(*this, id, features, targets);
    auto* tokens = reinterpret_cast<int64_t*>(features.data());  // slots are aligned for it
    const int64_t vocabulary = spec_.num_classes;
    int64_t token =
        (first_ + id) % vocabulary * (spec_.targets_per_sample % vocabulary) % vocabulary;
    for (size_t t = 0; t < targets.size(); ++t) {
      tokens[t] = token;
      token = token + 1 == vocabulary ? 0 : token + 1;
      targets[t] = token;
    }
  }

 private:
  SampleSpec spec_;
  int64_t first_;
  int64_t size_;
};

void check_range(const char* key, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return;
  throw ConfigError(
      cat(key, " is ", value, ", must be in [1, ", most, "] for the synthetic data set"));
}

SampleSpec image_spec(const DataRequest& request) {
  if (request.image_shape.size() != 3) {
    throw ConfigError(cat("image_shape has ", request.image_shape.size(),
                          " sizes, must have 3 (channels, height, width) for synthetic images"));
  }
  for (const int64_t size : request.image_shape) check_range("image_shape", size, 1 << 16);
  SampleSpec spec;
  spec.feature_type = FeatureType::kUint8;
  spec.feature_shape = request.image_shape;
  spec.num_classes = request.num_classes;
  const auto channels = static_cast<size_t>(request.image_shape[0]);
  spec.mean.assign(channels, 0.5F);  // of uniform bytes: 1/2 and 1/sqrt(12)
  spec.stddev.assign(channels, 1 / std::sqrt(12.0F));
  return spec;
}

SampleSpec token_spec(const DataRequest& request) {
  check_range("sequence_length", request.sequence_length, int64_t{1} << 24);
  SampleSpec spec;
  spec.feature_type = FeatureType::kInt64;
  spec.feature_shape = {request.sequence_length};
  spec.targets_per_sample = request.sequence_length;
  spec.num_classes = request.num_classes;
  return spec;
}

template <class Kind>
OpenedSource open_kind(const SampleSpec& spec, int64_t samples) {
  OpenedSource source;
  source.train = std::make_unique<Kind>(spec, 0, samples);
  source.eval = std::make_unique<Kind>(spec, samples, samples / kTrainPerEval);
  return source;
}

}  // namespace

OpenedSource open_synthetic(const DataRequest& request) {
  refuse_directory(request, "its samples are generated");
  check_range("synthetic_samples", request.synthetic_samples, int64_t{1} << 48);
  check_range("num_classes", request.num_classes, int64_t{1} << 30);
  OpenedSource source =
      request.is_tokens
          ? open_kind<SyntheticTokens>(token_spec(request), request.synthetic_samples)
          : open_kind<SyntheticImages>(image_spec(request), request.synthetic_samples);
  source.recipe = cat("index-coded, ", request.synthetic_samples, " samples");
  return source;
}

}  // namespace assay::data
