#include "data/dataset.h"

#include <algorithm>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/sources.h"

namespace assay::data {
namespace {

struct SourceEntry {
  std::string_view name;
  OpenedSource (*open)(const DataRequest&);
};

// Sorted by name.
constexpr SourceEntry kSources[] = {
    {"cifar10", open_cifar10},
    {"cifar100", open_cifar100},
    {"digits", open_digits},
    {"fashion_mnist", open_fashion_mnist},
    {"image_folder", open_image_folder},
    {"mnist", open_mnist},
    {"packed", open_packed},
    {"synthetic", open_synthetic},
    {"tar_shards", open_tar_shards},
    {"text", open_text},
    {"tokens", open_tokens},
};
constexpr std::string_view kDatasetNames[] = {"cifar10",      "cifar100", "digits", "fashion_mnist",
                                              "image_folder", "mnist",    "packed", "synthetic",
                                              "tar_shards",   "text",     "tokens"};
static_assert(std::size(kSources) == std::size(kDatasetNames));

// The first samples of another data set.
class FirstSamples : public Dataset {
 public:
  FirstSamples(std::unique_ptr<Dataset> whole, int64_t size)
      : whole_(std::move(whole)), size_(size) {}
  int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return whole_->spec(); }
  void read(int64_t id, std::span<unsigned char> features,
            std::span<int64_t> targets) const override {
    check_read(*this, id, features, targets);
    whole_->read(id, features, targets);
  }
  void read_for_training(const ReadContext& context, int64_t id, std::span<unsigned char> features,
                         std::span<int64_t> targets) const override {
    check_read(*this, id, features, targets);
    whole_->read_for_training(context, id, features, targets);
  }
  int64_t valid_targets(int64_t id) const override { return whole_->valid_targets(id); }
  const EncodedImages* images() const override { return whole_->images(); }

 private:
  std::unique_ptr<Dataset> whole_;
  int64_t size_;
};

std::unique_ptr<Dataset> limited(std::unique_ptr<Dataset> whole, const char* key, int64_t limit) {
  if (limit < 0) throw ConfigError(cat(key, " is ", limit, ", must be >= 0 (0: all)"));
  if (limit == 0 || limit >= whole->size()) return whole;
  return std::make_unique<FirstSamples>(std::move(whole), limit);
}

// Names of files are left out: a copy elsewhere, or an unpacked one, is the same data.
std::string data_digest(const OpenedData& data, const std::string& recipe) {
  const SampleSpec& spec = data.train->spec();
  std::string text = cat("name ", data.name, "\nrecipe ", recipe, "\n");
  for (const SourceFile& file : data.files) {
    text += cat("file ", file.bytes, " ", file.sha256, "\n");
  }
  text += cat("train ", data.train->size(), "\neval ", data.eval->size(), "\nfeatures ",
              spec.feature_type == FeatureType::kUint8 ? "uint8" : "int64");
  for (const int64_t size : spec.feature_shape) text += cat(" ", size);
  text += cat("\ntargets ", spec.targets_per_sample, " of ", spec.num_classes, "\nmean");
  for (const float mean : spec.mean) text += cat(" ", hex_float(static_cast<double>(mean)));
  text += "\nstddev";
  for (const float stddev : spec.stddev) text += cat(" ", hex_float(static_cast<double>(stddev)));
  return sha256_hex(text + "\n");
}

}  // namespace

size_t SampleSpec::feature_bytes() const {
  size_t bytes = feature_type == FeatureType::kUint8 ? 1 : sizeof(int64_t);
  for (const int64_t size : feature_shape) bytes *= static_cast<size_t>(size);
  return bytes;
}

void Dataset::read_for_training(const ReadContext&, int64_t id, std::span<unsigned char> features,
                                std::span<int64_t> targets) const {
  read(id, features, targets);
}

int64_t Dataset::valid_targets(int64_t) const { return spec().targets_per_sample; }

std::span<const std::string_view> dataset_names() { return kDatasetNames; }

OpenedData open_data(const DataRequest& request) {
  const auto* const entry =
      std::find_if(std::begin(kSources), std::end(kSources),
                   [&request](const SourceEntry& source) { return source.name == request.name; });
  if (entry == std::end(kSources)) {
    const std::vector<std::string> names(std::begin(kDatasetNames), std::end(kDatasetNames));
    const auto nearest = nearest_spelling(request.name, names);
    throw ConfigError(cat("dataset is ", quoted(request.name), ", must be one of ",
                          join(names, ", "),
                          nearest ? cat("; did you mean ", quoted(*nearest), "?") : ""));
  }
  OpenedSource source = entry->open(request);
  OpenedData data;
  data.name = request.name;
  data.train = limited(std::move(source.train), "max_train_samples", request.max_train_samples);
  data.eval = limited(std::move(source.eval), "max_eval_samples", request.max_eval_samples);
  data.files = std::move(source.files);
  data.digest = data_digest(data, source.recipe);
  return data;
}

std::string read_source_file(const std::string& path) {
  try {
    return read_file(path);
  } catch (const FileError& error) {
    throw DataError(cat("data set: ", error.what(), ". Fix: check --data_dir and the file"));
  }
}

void refuse_directory(const DataRequest& request, const std::string& why) {
  if (request.directory.empty()) return;
  throw ConfigError(cat("data_dir is ", quoted(request.directory), ", must be empty with dataset ",
                        request.name, ": ", why,
                        ". Fix: drop --data_dir, or choose a data set "
                        "that reads files with --dataset (fashion_mnist, mnist, text)"));
}

void check_read(const Dataset& dataset, int64_t id, std::span<unsigned char> features,
                std::span<int64_t> targets) {
  if (id < 0 || id >= dataset.size()) {
    throw InternalError(cat("sample ", id, " asked for, the data set has ", dataset.size()));
  }
  const auto targets_wanted = static_cast<size_t>(dataset.spec().targets_per_sample);
  if (features.size() != dataset.spec().feature_bytes() || targets.size() != targets_wanted) {
    throw InternalError(cat("sample ", id, " read into ", features.size(), " feature bytes and ",
                            targets.size(), " targets, it has ", dataset.spec().feature_bytes(),
                            " and ", targets_wanted));
  }
}

}  // namespace assay::data
