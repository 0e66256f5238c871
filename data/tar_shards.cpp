#include "data/tar_shards.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "data/file_reader.h"
#include "data/image_decoding.h"
#include "data/sources.h"
#include "data/split_files.h"

namespace assay::data {
namespace {

constexpr size_t kIndexThreads = 8;  // they wait for the disk, not for a CPU

class TarImages : public EncodedImages {
 public:
  explicit TarImages(std::vector<TarShard> shards) : shards_(std::move(shards)) {
    int64_t total = 0;
    for (const TarShard& shard : shards_) {
      total += static_cast<int64_t>(shard.samples.size());
      ends_.push_back(total);
    }
  }
  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  int64_t label(int64_t id) const override { return place_of(id).sample->label; }
  void read(int64_t id, std::string& bytes) const override {
    const Place place = place_of(id);
    bytes.resize(static_cast<size_t>(place.sample->bytes));
    const FileReader file(place.shard->path);
    file.read_at(place.sample->offset,
                 {reinterpret_cast<unsigned char*>(bytes.data()), bytes.size()});
  }
  std::string origin(int64_t id) const override {
    const Place place = place_of(id);
    return cat(place.shard->path, ": ", escaped(place.sample->name));
  }

 private:
  struct Place {
    const TarShard* shard = nullptr;
    const TarSample* sample = nullptr;
  };
  Place place_of(int64_t id) const {
    const auto shard = std::upper_bound(ends_.begin(), ends_.end(), id) - ends_.begin();
    const int64_t before = shard == 0 ? 0 : ends_[static_cast<size_t>(shard) - 1];
    const TarShard& found = shards_.at(static_cast<size_t>(shard));
    return {&found, &found.samples.at(static_cast<size_t>(id - before))};
  }

  std::vector<TarShard> shards_;
  std::vector<int64_t> ends_;  // of each shard: samples up to and with it
};

}  // namespace

std::vector<TarShard> read_tar_shards(const std::vector<std::string>& paths) {
  std::vector<TarShard> shards(paths.size());
  std::vector<std::exception_ptr> errors(paths.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < paths.size(); i = next++) {
      try {
        shards[i] = read_tar_shard(paths[i]);
      } catch (...) {  // thread boundary: rethrown below, the first in order
        errors[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < std::min(kIndexThreads, paths.size()); ++i) threads.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return shards;
}

std::unique_ptr<EncodedImages> make_tar_images(std::vector<TarShard> shards) {
  return std::make_unique<TarImages>(std::move(shards));
}

OpenedSource open_tar_files(const DataRequest& request, const MakeImageDecoding& make_decoding) {
  const SplitFiles paths = find_split_files(request.directory, ".tar", "tar_shards");
  OpenedSource source;
  std::vector<std::unique_ptr<EncodedImages>> splits;
  for (const std::vector<std::string>* split : {&paths.train, &paths.eval}) {
    std::vector<TarShard> shards = read_tar_shards(*split);
    for (const TarShard& shard : shards) {
      // Hashing all of the pixels would read the whole set before the first step; the index has
      // every name, place, size and label.
      source.files.push_back({shard.path, shard.bytes, ""});
      source.recipe += cat("index ", shard.index_digest, "; ");
    }
    splits.push_back(make_tar_images(std::move(shards)));
  }
  return open_image_samples({std::move(splits[0]), std::move(splits[1])}, std::move(source),
                            request, make_decoding);
}

OpenedSource open_tar_shards(const DataRequest& request) {
  return open_tar_files(request, make_image_decoding);
}

}  // namespace assay::data
