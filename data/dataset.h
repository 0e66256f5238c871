// What the pipeline needs of a data set: a size and a way to read sample i. No order, no threads,
// no torch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::data {

enum class FeatureType { kUint8, kInt64 };  // pixels; token ids

// Shape and meaning of one sample. A batch is `count` samples in a row.
struct SampleSpec {
  FeatureType feature_type = FeatureType::kUint8;
  std::vector<int64_t> feature_shape;  // pixels: {C, H, W}; tokens: {T}
  int64_t targets_per_sample = 1;      // label: 1; tokens: T (the next token at each place)
  int64_t num_classes = 0;             // targets lie in [0, num_classes): classes or vocabulary
  // Pixels become (x / 255 - mean[c]) / stddev[c] on the device.
  std::vector<float> mean;
  std::vector<float> stddev;

  size_t feature_bytes() const;  // of one sample
};

// A file that a data set was read from (or an embedded one: path "embedded:<name>").
struct SourceFile {
  std::string path;
  uint64_t bytes = 0;
  std::string sha256;
};

class EncodedImages;

// What chance may depend on besides the sample itself.
struct ReadContext {
  uint64_t seed = 0;
  int64_t epoch = 0;
};

// One split of a data set. Reads are const and thread-safe: several workers call read() at once.
// Sample ids are 0 .. size()-1 within the split.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual const SampleSpec& spec() const = 0;
  // Writes the sample's features and targets. Throws DataError naming file, index and value.
  virtual void read(int64_t id, std::span<unsigned char> features,
                    std::span<int64_t> targets) const = 0;
  // The sample as training sees it in that epoch: augmented, if this data set does that; a pure
  // function of context and id. Else as read() gives it.
  virtual void read_for_training(const ReadContext& context, int64_t id,
                                 std::span<unsigned char> features,
                                 std::span<int64_t> targets) const;
  // Targets that count in the loss; a pure function of the id.
  virtual int64_t valid_targets(int64_t id) const;
  // The image files behind the samples, not decoded; null if the samples are something else.
  virtual const EncodedImages* images() const { return nullptr; }
};

struct OpenedData {
  std::string name;  // "digits", "text", ...
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> eval;  // held-out samples; may have size 0, never null
  std::vector<SourceFile> files;  // the manifest
  std::string digest;             // SHA-256 over name, files' hashes, split sizes and spec
};

// How a JPEG is decoded when fewer pixels are wanted than it has.
enum class JpegScale {
  kExact,  // at full size
  kAuto,   // at 1/2, 1/4 or 1/8 of the size, as long as that is no less than what is wanted
};

struct DataRequest {
  std::string name;               // as in contract.md; never empty
  std::string directory = {};     // empty: embedded or the system's package
  int64_t sequence_length = 128;  // tokens a sample
  int64_t max_train_samples = 0;  // 0: all
  int64_t max_eval_samples = 0;
  int64_t synthetic_samples = 1024;
  std::vector<int64_t> image_shape = {};   // what the model wants: {C, H, W}; for `synthetic`
  bool is_tokens = false;                  // `synthetic` gives tokens instead of images
  int64_t num_classes = 10;                // synthetic's classes or vocabulary
  int64_t class_limit = 0;                 // files' labels or ids must be below; 0: not known
  std::optional<int64_t> token_bits = {};  // `tokens` without a header: 16 or 32; unset: 16
  bool augment = true;                     // training images, where the data set has a way of it
  JpegScale jpeg_scale = JpegScale::kExact;
};

// Every name that open_data knows, sorted.
std::span<const std::string_view> dataset_names();

// Opens a data set by name. Throws DataError: missing files (with the fix), wrong magic, labels or
// ids out of range, sizes that do not match. Throws ConfigError for an unknown name and for
// settings that contradict it (data_dir with an embedded or generated data set).
OpenedData open_data(const DataRequest& request);

}  // namespace assay::data
