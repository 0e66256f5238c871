// The data set `tokens`: windows of sequence_length tokens out of token files. Sample i of a file
// is tokens [i * T, i * T + T), its targets are one place further on; windows neither overlap nor
// cross from one file into the next. What is left behind the last whole window is not used.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/sources.h"
#include "data/split_files.h"
#include "data/token_file.h"

namespace assay::data {
namespace {

constexpr int64_t kMaxSequenceLength = int64_t{1} << 24;

class TokenWindows : public Dataset {
 public:
  TokenWindows(std::vector<TokenFile> files, int64_t sequence_length) : files_(std::move(files)) {
    spec_.feature_type = FeatureType::kInt64;
    spec_.feature_shape = {sequence_length};
    spec_.targets_per_sample = sequence_length;
    int64_t total = 0;
    for (const TokenFile& file : files_) {
      total += std::max<int64_t>(file.size() - 1, 0) / sequence_length;
      ends_.push_back(total);
    }
  }
  void set_vocabulary(int64_t vocabulary) { spec_.num_classes = vocabulary; }
  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  const SampleSpec& spec() const override { return spec_; }
  void read(int64_t id, std::span<unsigned char> features,
            std::span<int64_t> targets) const override {
    check_read(*this, id, features, targets);
    const auto file = std::upper_bound(ends_.begin(), ends_.end(), id) - ends_.begin();
    const int64_t before = file == 0 ? 0 : ends_[static_cast<size_t>(file) - 1];
    // Slots are aligned for int64_t (batch_slots.h), and so is any sample in them.
    auto* inputs = reinterpret_cast<int64_t*>(features.data());
    files_[static_cast<size_t>(file)].read_window(
        (id - before) * static_cast<int64_t>(targets.size()), {inputs, targets.size()}, targets);
  }
  const std::vector<TokenFile>& files() const { return files_; }

 private:
  std::vector<TokenFile> files_;
  std::vector<int64_t> ends_;  // of each file: samples up to and with it
  SampleSpec spec_;
};

std::unique_ptr<TokenWindows> open_windows(const std::vector<std::string>& paths,
                                           const DataRequest& request) {
  std::vector<TokenFile> files;
  for (const std::string& path : paths) files.emplace_back(path, request.token_bits);
  return std::make_unique<TokenWindows>(std::move(files), request.sequence_length);
}

}  // namespace

OpenedSource open_tokens(const DataRequest& request) {
  if (request.sequence_length < 1 || request.sequence_length > kMaxSequenceLength) {
    throw ConfigError(cat("sequence_length is ", request.sequence_length, ", must be in [1, ",
                          kMaxSequenceLength, "]. Fix: --sequence_length 128"));
  }
  const SplitFiles paths = find_split_files(request.directory, ".bin", "tokens");
  std::unique_ptr<TokenWindows> train = open_windows(paths.train, request);
  std::unique_ptr<TokenWindows> eval = open_windows(paths.eval, request);
  if (train->size() == 0) {
    throw DataError(cat(
        "data set tokens: the longest of ", paths.train.size(), " files to train ", "on has ",
        std::max_element(train->files().begin(), train->files().end(),
                         [](const TokenFile& a, const TokenFile& b) { return a.size() < b.size(); })
            ->size(),
        " tokens (", paths.train[0], "), one sample of sequence_length ", request.sequence_length,
        " needs ", request.sequence_length + 1,
        ". Fix: more tokens, or a smaller data.sequence_length"));
  }
  OpenedSource source;
  int64_t largest = 0;
  for (const TokenWindows* split : {train.get(), eval.get()}) {
    for (const TokenFile& file : split->files()) {
      const TokenFacts facts = file.facts();
      check_tokens(file, facts, request.class_limit);
      largest = std::max(largest, facts.largest);
      source.files.push_back({file.path(), file.file_bytes(), facts.sha256});
      source.recipe += cat("tokens of ", file.layout().token_bytes, " bytes behind ",
                           file.layout().header_bytes, "; ");
    }
  }
  // A fact of the files, not of the model: the same data have the same digest for any model.
  train->set_vocabulary(largest + 1);
  eval->set_vocabulary(largest + 1);
  source.recipe += "windows without overlap";
  source.train = std::move(train);
  source.eval = std::move(eval);
  return source;
}

}  // namespace assay::data
