// A text as byte-level tokens: ids 0..255, windows of sequence_length without overlap, targets are
// the next byte. The last tenth of the bytes is held out.
#include <string>
#include <string_view>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/embedded_samples.h"
#include "data/sources.h"

namespace assay::data {
namespace {

constexpr int64_t kByteVocabulary = 256;
constexpr size_t kHeldOutOneIn = 10;
constexpr int64_t kMaxSequenceLength = int64_t{1} << 24;

// Windows of one part of the text. What is left behind the last whole window is not used.
class ByteWindows : public Dataset {
 public:
  ByteWindows(std::shared_ptr<const std::string> owner, std::string_view part,
              int64_t sequence_length)
      : owner_(std::move(owner)), part_(part) {
    spec_.feature_type = FeatureType::kInt64;
    spec_.feature_shape = {sequence_length};
    spec_.targets_per_sample = sequence_length;
    spec_.num_classes = kByteVocabulary;
    const auto bytes = static_cast<int64_t>(part.size());
    size_ = bytes == 0 ? 0 : (bytes - 1) / sequence_length;  // the last target needs a byte too
  }
  int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return spec_; }
  void read(int64_t id, std::span<unsigned char> features,
            std::span<int64_t> targets) const override {
    check_read(*this, id, features, targets);
    // Slots are aligned for int64_t (batch_slots.h), and so is any sample in them.
    auto* tokens = reinterpret_cast<int64_t*>(features.data());
    const char* window = part_.data() + static_cast<size_t>(id) * targets.size();
    for (size_t t = 0; t < targets.size(); ++t) {
      tokens[t] = static_cast<unsigned char>(window[t]);
      targets[t] = static_cast<unsigned char>(window[t + 1]);
    }
  }

 private:
  std::shared_ptr<const std::string> owner_;  // null for the embedded text
  std::string_view part_;
  SampleSpec spec_;
  int64_t size_ = 0;
};

// data_dir may be a .txt file, or a folder with exactly one.
std::string find_text(const std::string& directory) {
  if (is_regular_file(directory)) {
    if (directory.ends_with(".txt")) return directory;
    throw DataError(cat("data_dir ", quoted(directory),
                        " is a file whose name does not end in .txt, must be a .txt file or a "
                        "folder with exactly one. Fix: --data_dir FILE.txt"));
  }
  if (!is_directory(directory)) {
    throw DataError(cat("data_dir ", quoted(directory),
                        " does not exist, must be a .txt file or a folder with exactly one. "
                        "Fix: --data_dir FILE.txt, or drop it for the embedded text"));
  }
  std::vector<std::string> found;
  try {
    for (const std::string& name : list_directory(directory)) {
      const std::string path = join_path(directory, name);
      if (name.ends_with(".txt") && is_regular_file(path)) found.push_back(path);
    }
  } catch (const FileError& error) {
    throw DataError(cat("data set text: ", error.what(), ". Fix: check --data_dir"));
  }
  if (found.size() != 1) {
    const std::string names = found.empty() ? ""
                                            : cat(" (", file_name(found[0]), ", ",
                                                  found.size() > 1 ? file_name(found[1]) : "",
                                                  found.size() > 2 ? ", ..." : "", ")");
    throw DataError(cat("data_dir ", quoted(directory), " has ", found.size(), " .txt files", names,
                        ", must have exactly 1. Fix: --data_dir FILE.txt"));
  }
  return found[0];
}

}  // namespace

OpenedSource open_text(const DataRequest& request) {
  if (request.sequence_length < 1 || request.sequence_length > kMaxSequenceLength) {
    throw ConfigError(cat("sequence_length is ", request.sequence_length, ", must be in [1, ",
                          kMaxSequenceLength, "]. Fix: --sequence_length 128"));
  }
  std::shared_ptr<const std::string> owner;
  std::string_view text = embedded_text();
  std::string path = "embedded:text.txt";
  if (!request.directory.empty()) {
    path = find_text(request.directory);
    owner = std::make_shared<const std::string>(read_source_file(path));
    text = *owner;
  }
  const size_t held_out = text.size() / kHeldOutOneIn;
  const std::string_view train = text.substr(0, text.size() - held_out);
  const auto needed = static_cast<size_t>(request.sequence_length) + 1;
  if (train.size() < needed) {
    throw DataError(cat(path, " has ", text.size(), " bytes, ", train.size(),
                        " of them to train on (the last tenth is held out); one sample of "
                        "sequence_length ",
                        request.sequence_length, " needs ", needed,
                        ". Fix: a longer text, or a smaller --sequence_length"));
  }
  OpenedSource source;
  source.train = std::make_unique<ByteWindows>(owner, train, request.sequence_length);
  source.eval =
      std::make_unique<ByteWindows>(owner, text.substr(train.size()), request.sequence_length);
  source.files = {{path, text.size(), sha256_hex(text)}};
  source.recipe = "bytes, last tenth held out";
  return source;
}

}  // namespace assay::data
