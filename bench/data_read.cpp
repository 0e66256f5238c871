// How fast samples come out of the pipeline: windows of tokens from a token file and stored pixels
// from a packed shard, through the loader, with a given number of workers. Prints JSON lines.
//
//   bench_data_read [workers=2] [seconds=3] [token_file_mb=256]
//
// Files are made in a temporary folder and read from the page cache: this measures the pipeline,
// not the disk.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/mix64.h"
#include "data/pack.h"
#include "data/sampler.h"

namespace assay::data {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Settings {
  int64_t workers = 2;
  double seconds = 3;
  int64_t token_file_mb = 256;
};

// Images of 224 x 224, each with pixels of its own.
class Pixels : public Dataset {
 public:
  explicit Pixels(int64_t size) : size_(size) {
    spec_.feature_shape = {3, 224, 224};
    spec_.num_classes = 1000;
  }
  int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return spec_; }
  void read(int64_t id, std::span<unsigned char> features,
            std::span<int64_t> targets) const override {
    auto state = static_cast<uint64_t>(id);
    for (unsigned char& pixel : features) {
      pixel = static_cast<unsigned char>(mix64(state += kMixIncrement));
    }
    targets[0] = id % 1000;
  }

 private:
  int64_t size_;
  SampleSpec spec_;
};

double samples_per_second(const Dataset& dataset, int64_t batch_size, const Settings& settings) {
  const Sampler sampler(
      {.dataset_size = dataset.size(), .micro_batch_size = batch_size, .seed = 1});
  DataLoader loader(dataset, sampler, {.num_workers = settings.workers, .prefetch_factor = 2});
  loader.start({});
  for (int i = 0; i < 20; ++i) loader.next();  // the map is filled, threads are running
  const auto start = Clock::now();
  int64_t samples = 0;
  while (seconds_since(start) < settings.seconds) {
    samples += static_cast<int64_t>(loader.next().ids.size());
  }
  const double elapsed = seconds_since(start);
  return static_cast<double>(samples) / elapsed;
}

void print(const char* what, const Settings& settings, const std::string& rates) {
  std::printf("{\"bench\":\"%s\",\"workers\":%lld,%s}\n", what,
              static_cast<long long>(settings.workers), rates.c_str());
}

void measure_tokens(const std::string& folder, const Settings& settings) {
  constexpr int64_t kSequenceLength = 1024;
  FileWriter writer(join_path(folder, "train.bin"), "");
  std::vector<uint16_t> block(size_t{1} << 19);
  uint64_t state = 1;
  for (int64_t mb = 0; mb < settings.token_file_mb; ++mb) {
    for (uint16_t& token : block) {
      token = static_cast<uint16_t>(mix64(state += kMixIncrement) % 50257);
    }
    writer.write(block.data(), block.size() * sizeof(uint16_t));
  }
  writer.close();
  DataRequest request;
  request.name = "tokens";
  request.directory = folder;
  request.sequence_length = kSequenceLength;
  request.class_limit = 50257;
  const auto start = Clock::now();
  const OpenedData data = open_data(request);
  const double open_seconds = seconds_since(start);
  const double rate = samples_per_second(*data.train, 64, settings);
  print("token_batches", settings,
        cat("\"tokens_per_second\":", rate * static_cast<double>(kSequenceLength),
            ",\"open_seconds\":", open_seconds, ",\"file_mb\":", settings.token_file_mb));
}

void measure_packed(const std::string& folder, const Settings& settings) {
  OpenedData source;
  source.name = "pixels";
  source.digest = "bench";
  source.train = std::make_unique<Pixels>(4096);
  source.eval = std::make_unique<Pixels>(0);
  PackRequest request;
  request.output_dir = folder;
  request.num_threads = std::max<int64_t>(1, settings.workers);
  pack_data(source, request);
  DataRequest opened;
  opened.name = "packed";
  opened.directory = folder;
  const OpenedData data = open_data(opened);
  const double rate = samples_per_second(*data.train, 64, settings);
  print("packed_224", settings, cat("\"images_per_second\":", rate));
}

int run(int count, char** words) {
  Settings settings;
  const auto number = [&](int index, int64_t otherwise) {
    if (index >= count) return otherwise;
    const std::optional<int64_t> value = parse_int64(words[index]);
    if (!value || *value < 0) throw ConfigError(cat(quoted(words[index]), " is no whole number"));
    return *value;
  };
  settings.workers = number(1, settings.workers);
  settings.seconds = static_cast<double>(number(2, 3));
  settings.token_file_mb = number(3, settings.token_file_mb);
  const TemporaryFolder folder("assay-bench");
  const std::string tokens = join_path(folder.path(), "tokens");
  create_directories(tokens);
  measure_tokens(tokens, settings);
  measure_packed(join_path(folder.path(), "packed"), settings);
  return 0;
}

}  // namespace
}  // namespace assay::data

int main(int count, char** words) {
  try {
    return assay::data::run(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
