#include "data/pack.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <thread>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/encoded_images.h"
#include "data/packed_writer.h"

namespace assay::data {
namespace {

constexpr int64_t kShardBytes = int64_t{1} << 30;
constexpr int64_t kEncodedShardSamples = 10000;   // of about 110 kB each
constexpr size_t kBlockBytes = size_t{64} << 20;  // samples in memory at once

struct Sample {
  std::string features;
  std::vector<int64_t> targets;
};

// Either kind of source, sample by sample.
class SampleReader {
 public:
  SampleReader(const Dataset& dataset, bool is_original)
      : dataset_(dataset), images_(is_original ? dataset.images() : nullptr) {
    if (!is_original || images_ != nullptr || dataset.size() == 0) return;
    throw ConfigError(
        "content is \"original\", but the data set has no image files of its own. "
        "Fix: --content pixels");
  }
  bool is_encoded() const { return images_ != nullptr; }
  int64_t size() const { return dataset_.size(); }
  SampleSpec spec() const {
    SampleSpec spec = dataset_.spec();
    if (is_encoded()) spec.feature_shape = {};
    return spec;
  }
  size_t usual_bytes() const { return is_encoded() ? size_t{1} << 17 : spec().feature_bytes(); }
  void read(int64_t id, Sample& sample) const {
    sample.targets.resize(static_cast<size_t>(dataset_.spec().targets_per_sample));
    if (is_encoded()) {
      images_->read(id, sample.features);
      sample.targets[0] = images_->label(id);
      return;
    }
    sample.features.resize(dataset_.spec().feature_bytes());
    dataset_.read(
        id, {reinterpret_cast<unsigned char*>(sample.features.data()), sample.features.size()},
        sample.targets);
  }

 private:
  const Dataset& dataset_;
  const EncodedImages* images_;  // null: features as they are
};

// Samples [first, first + block.size()), read by several threads.
void read_block(const SampleReader& reader, int64_t first, int64_t num_threads,
                std::vector<Sample>& block) {
  std::atomic<size_t> next{0};
  std::vector<std::exception_ptr> errors(block.size());
  const auto work = [&] {
    for (size_t i = next++; i < block.size(); i = next++) {
      try {
        reader.read(first + static_cast<int64_t>(i), block[i]);
      } catch (...) {  // thread boundary: rethrown below, the first in order
        errors[i] = std::current_exception();
        return;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int64_t i = 1; i < num_threads; ++i) threads.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

std::string shard_name(std::string_view split, int64_t shard) {
  char number[32];
  std::snprintf(number, sizeof(number), "%05lld", static_cast<long long>(shard));
  return cat(split, "-", number, ".packed");
}

void check_folder(const PackRequest& request) {
  if (!is_directory(request.output_dir)) return;
  for (const std::string& name : list_directory(request.output_dir)) {
    if (!name.ends_with(".packed")) continue;
    if (!request.may_overwrite) {
      throw ConfigError(cat(join_path(request.output_dir, name),
                            " is there already; shards of two "
                            "data sets in one folder cannot be told apart. Fix: another --output, "
                            "or --overwrite"));
    }
    remove_file(join_path(request.output_dir, name));
  }
}

struct Progress {
  uint64_t done = 0;
  uint64_t total = 0;
};

class SplitPacker {
 public:
  SplitPacker(const OpenedData& data, const Dataset& dataset, std::string_view split,
              const PackRequest& request)
      : reader_(dataset, request.is_original), request_(request), split_(split) {
    const auto sample_bytes = static_cast<int64_t>(reader_.usual_bytes()) +
                              dataset.spec().targets_per_sample * int64_t{8};
    per_shard_ = request.shard_samples;
    if (per_shard_ == 0) {
      per_shard_ = reader_.is_encoded() ? kEncodedShardSamples
                                        : std::max<int64_t>(1, kShardBytes / sample_bytes);
    }
    block_samples_ = std::max<int64_t>(1, static_cast<int64_t>(kBlockBytes) / sample_bytes);
    header_.source = data.name;
    header_.source_digest = data.digest;
    header_.split = split_;
    header_.num_shards = (reader_.size() + per_shard_ - 1) / per_shard_;
    header_.content = reader_.is_encoded() ? PackedContent::kEncoded : PackedContent::kRaw;
    header_.spec = reader_.spec();
  }

  void run(Progress& progress, std::vector<PackedShard>& shards) {
    for (int64_t shard = 0; shard < header_.num_shards; ++shard) {
      header_.shard = shard;
      header_.first_sample = shard * per_shard_;
      header_.num_samples = std::min(per_shard_, reader_.size() - header_.first_sample);
      const std::string path = join_path(request_.output_dir, shard_name(split_, shard));
      write_shard(path, progress);
      shards.push_back({{path, file_bytes(path), sha256_file_hex(path)}, header_.num_samples});
    }
  }

 private:
  void write_shard(const std::string& path, Progress& progress) {
    PackedWriter writer(path, header_);
    std::vector<Sample> block;
    for (int64_t done = 0; done < header_.num_samples;) {
      const int64_t count = std::min(block_samples_, header_.num_samples - done);
      block.resize(static_cast<size_t>(count));
      read_block(reader_, header_.first_sample + done, request_.num_threads, block);
      for (const Sample& sample : block) {
        writer.add({reinterpret_cast<const unsigned char*>(sample.features.data()),
                    sample.features.size()},
                   sample.targets);
      }
      done += count;
      progress.done += static_cast<uint64_t>(count);
      if (request_.on_progress) request_.on_progress(progress.done, progress.total);
    }
    writer.commit();
  }

  SampleReader reader_;
  const PackRequest& request_;
  std::string split_;
  int64_t per_shard_ = 0;
  int64_t block_samples_ = 0;
  PackedHeader header_;
};

}  // namespace

std::vector<PackedShard> pack_data(const OpenedData& data, const PackRequest& request) {
  Progress progress{.total = static_cast<uint64_t>(data.train->size() + data.eval->size())};
  std::vector<PackedShard> shards;
  try {
    check_folder(request);
    create_directories(request.output_dir);
    SplitPacker(data, *data.train, "train", request).run(progress, shards);
    SplitPacker(data, *data.eval, "val", request).run(progress, shards);
  } catch (const FileError& error) {
    throw DataError(cat("packed shards cannot be written: ", error.what(),
                        ". Fix: make room or permissions, or another --output"));
  }
  return shards;
}

}  // namespace assay::data
