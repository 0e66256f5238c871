// The data set `packed`: shards that `assay data pack` wrote, read straight from the map into the
// batch slot.
#include <algorithm>
#include <cstring>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "data/image_decoding.h"
#include "data/packed_set.h"
#include "data/sources.h"
#include "data/split_files.h"

namespace assay::data {
namespace {

class PackedSamples : public Dataset {
 public:
  PackedSamples(PackedSet set, const SampleSpec& spec) : set_(std::move(set)), spec_(spec) {}
  int64_t size() const override { return set_.size(); }
  const SampleSpec& spec() const override { return spec_; }
  void read(int64_t id, std::span<unsigned char> features,
            std::span<int64_t> targets) const override {
    check_read(*this, id, features, targets);
    const std::span<const unsigned char> bytes = set_.sample(id, targets);
    std::memcpy(features.data(), bytes.data(), features.size());
    for (const int64_t target : targets) {
      if (target >= 0 && target < spec_.num_classes) continue;
      throw DataError(cat(set_.origin(id), ": target is ", target, ", must be in [0, ",
                          spec_.num_classes - 1, "]. Fix: correct the data and pack them again"));
    }
  }

 private:
  PackedSet set_;
  SampleSpec spec_;
};

// Image files out of packed shards.
class PackedImages : public EncodedImages {
 public:
  explicit PackedImages(PackedSet set) : set_(std::move(set)) {}
  int64_t size() const override { return set_.size(); }
  int64_t label(int64_t id) const override { return set_.target(id); }
  void read(int64_t id, std::string& bytes) const override {
    int64_t label = 0;
    const std::span<const unsigned char> file = set_.sample(id, {&label, 1});
    bytes.assign(reinterpret_cast<const char*>(file.data()), file.size());
  }
  std::string origin(int64_t id) const override { return set_.origin(id); }

 private:
  PackedSet set_;
};

void check_classes(const PackedHeader& header, const std::string& path, int64_t limit) {
  if (limit == 0 || header.spec.num_classes <= limit) return;
  throw DataError(cat("packed shard ", path, " has targets in [0, ", header.spec.num_classes - 1,
                      "], the model takes [0, ", limit - 1,
                      "]. Fix: the model that fits, e.g. another model.vocab_size, or other data"));
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += cat(text.empty() ? "" : " x ", size);
  return text;
}

// What a model asks for; `assay data` asks for nothing.
void check_shape(const PackedHeader& header, const std::string& path, const DataRequest& request) {
  const std::vector<int64_t> wanted =
      request.is_tokens ? std::vector<int64_t>{request.sequence_length} : request.image_shape;
  const bool has_tokens = header.spec.feature_type == FeatureType::kInt64;
  if (wanted.empty() || (header.spec.feature_shape == wanted && has_tokens == request.is_tokens)) {
    return;
  }
  throw DataError(cat("packed shard ", path, " holds samples of ",
                      shape_text(header.spec.feature_shape), has_tokens ? " tokens" : " pixels",
                      ", the model takes ", shape_text(wanted),
                      request.is_tokens ? " tokens. Fix: data.sequence_length, or pack"
                                        : " pixels. Fix: the model that fits, or pack",
                      " the data for this model"));
}

}  // namespace

OpenedSource open_packed_files(const DataRequest& request, const MakeImageDecoding& make_decoding) {
  const SplitFiles paths = find_split_files(request.directory, ".packed", "packed");
  PackedSet train(paths.train, "train");
  PackedSet eval(paths.eval, "val");
  const PackedHeader& header = train.header();
  check_classes(header, paths.train[0], request.class_limit);
  OpenedSource source;
  for (const PackedSet* set : {&train, &eval}) {
    if (set->size() > 0) check_same_kind(header, *set);
    for (const PackedFile& file : set->files()) {
      source.files.push_back({file.path(), file.file_bytes(), ""});
      // Of the header and the index, and through the index of every sample.
      source.recipe +=
          cat("shard ", file.layout().header_checksum, " ", file.layout().index_checksum, "; ");
    }
  }
  if (header.content == PackedContent::kEncoded) {
    return open_image_samples({std::make_unique<PackedImages>(std::move(train)),
                               std::make_unique<PackedImages>(std::move(eval))},
                              std::move(source), request, make_decoding);
  }
  check_shape(header, paths.train[0], request);
  const SampleSpec spec = header.spec;  // the set is moved away
  source.recipe += "as stored";
  source.train = std::make_unique<PackedSamples>(std::move(train), spec);
  source.eval = std::make_unique<PackedSamples>(std::move(eval), spec);
  return source;
}

OpenedSource open_packed(const DataRequest& request) {
  return open_packed_files(request, make_image_decoding);
}

}  // namespace assay::data
