#include "data/packed_file.h"

#include <cstring>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"

namespace assay::data {
namespace {

constexpr uint64_t kMostHeaderBytes = uint64_t{1} << 20;
constexpr uint64_t kEntryBytes = 24;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw DataError(
      cat("packed shard ", path, " ", what, ". Fix: copy the file again, or pack the data again"));
}

template <class Number>
Number number_at(std::span<const unsigned char> file, uint64_t offset) {
  Number number = 0;
  std::memcpy(&number, file.data() + offset, sizeof(number));
  return number;
}

bool has_text(std::span<const unsigned char> file, uint64_t offset, std::string_view text) {
  return std::memcmp(file.data() + offset, text.data(), text.size()) == 0;
}

uint64_t aligned(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

struct Trailer {
  uint64_t index_offset = 0;
  uint64_t count = 0;
  uint64_t index_checksum = 0;
  uint64_t file_bytes = 0;
  uint64_t header_checksum = 0;
};

Trailer parse_trailer(std::span<const unsigned char> file, const std::string& path) {
  const uint64_t begin = file.size() - kPackedTrailerBytes;
  if (!has_text(file, begin + 56, kPackedEnd)) {
    refuse(path, cat("has ", file.size(), " bytes and does not end in ", kPackedEnd,
                     ": it was cut off or is not finished"));
  }
  if (xxh3_64(file.data() + begin, 48) != number_at<uint64_t>(file, begin + 48)) {
    refuse(path, "has a damaged trailer: its checksum does not fit");
  }
  const Trailer trailer{.index_offset = number_at<uint64_t>(file, begin),
                        .count = number_at<uint64_t>(file, begin + 8),
                        .index_checksum = number_at<uint64_t>(file, begin + 16),
                        .file_bytes = number_at<uint64_t>(file, begin + 24),
                        .header_checksum = number_at<uint64_t>(file, begin + 32)};
  if (trailer.file_bytes != file.size()) {
    refuse(path, cat("has ", file.size(), " bytes, its trailer says ", trailer.file_bytes));
  }
  // Divided, so that no product can wrap.
  const bool is_sound = trailer.index_offset <= begin &&
                        trailer.index_offset % kPackedAlignment == 0 &&
                        (begin - trailer.index_offset) % kEntryBytes == 0 &&
                        (begin - trailer.index_offset) / kEntryBytes == trailer.count;
  if (!is_sound) {
    refuse(path, cat("has an index of ", trailer.count, " samples at byte ", trailer.index_offset,
                     ", which does not fit between there and byte ", begin));
  }
  return trailer;
}

std::vector<PackedEntry> parse_index(std::span<const unsigned char> file, const Trailer& trailer,
                                     uint64_t first_byte, const PackedHeader& header,
                                     const std::string& path) {
  const uint64_t target_bytes =
      static_cast<uint64_t>(header.spec.targets_per_sample) * sizeof(int64_t);
  const bool is_raw = header.content == PackedContent::kRaw;
  const uint64_t raw_bytes = is_raw ? header.spec.feature_bytes() + target_bytes : 0;
  std::vector<PackedEntry> entries(static_cast<size_t>(trailer.count));
  uint64_t end = first_byte;
  for (size_t i = 0; i < entries.size(); ++i) {
    const uint64_t place = trailer.index_offset + i * kEntryBytes;
    PackedEntry& entry = entries[i];
    entry = {number_at<uint64_t>(file, place), number_at<uint64_t>(file, place + 8),
             number_at<uint64_t>(file, place + 16)};
    const bool is_inside = entry.offset >= end && entry.offset % kPackedAlignment == 0 &&
                           entry.offset <= trailer.index_offset &&
                           entry.bytes <= trailer.index_offset - entry.offset;
    const bool has_right_size = is_raw ? entry.bytes == raw_bytes : entry.bytes > target_bytes;
    if (!is_inside || !has_right_size) {
      refuse(path, cat("has sample ", i, " at byte ", entry.offset, " with ", entry.bytes,
                       " bytes, must lie in [", end, ", ", trailer.index_offset, ") with ",
                       is_raw ? raw_bytes : target_bytes + 1, is_raw ? "" : " or more", " bytes"));
    }
    end = entry.offset + entry.bytes;
  }
  return entries;
}

MappedFile map_shard(const std::string& path) {
  try {
    return MappedFile(path);
  } catch (const FileError& error) {
    throw DataError(cat("packed shard: ", error.what(), ". Fix: check --data_dir and the file"));
  }
}

}  // namespace

PackedLayout parse_packed(std::span<const unsigned char> file, const std::string& path) {
  if (file.size() < kPackedFirstSample + kPackedTrailerBytes || !has_text(file, 0, kPackedStart)) {
    refuse(path, cat("has ", file.size(), " bytes and ",
                     file.size() < kPackedStart.size() || !has_text(file, 0, kPackedStart)
                         ? cat("does not start with ", kPackedStart, ": it is no packed shard")
                         : "is cut off"));
  }
  const auto version = number_at<uint32_t>(file, 8);
  if (version != kPackedVersion) {
    refuse(path, cat("has version ", version, " of the format, this assay reads version ",
                     kPackedVersion));
  }
  const uint64_t header_bytes = number_at<uint32_t>(file, 12);
  const uint64_t room = file.size() - kPackedPrefixBytes - kPackedTrailerBytes;
  if (header_bytes > kMostHeaderBytes || header_bytes > room) {
    refuse(path, cat("has a header of ", header_bytes, " bytes, at most ",
                     std::min(kMostHeaderBytes, room), " fit"));
  }
  const uint64_t header_checksum = number_at<uint64_t>(file, 16);
  const Trailer trailer = parse_trailer(file, path);
  if (xxh3_64(file.data() + kPackedPrefixBytes, header_bytes) != header_checksum ||
      trailer.header_checksum != header_checksum) {
    refuse(path, "has a damaged header: its checksum does not fit");
  }
  const uint64_t first_byte = aligned(kPackedPrefixBytes + header_bytes, kPackedFirstSample);
  if (first_byte > trailer.index_offset) refuse(path, "has its index within its header");
  PackedLayout layout;
  layout.header = parse_packed_header(
      {reinterpret_cast<const char*>(file.data()) + kPackedPrefixBytes, header_bytes}, path);
  if (static_cast<uint64_t>(layout.header.num_samples) != trailer.count) {
    refuse(path, cat("has ", trailer.count, " samples in its index, its header says ",
                     layout.header.num_samples));
  }
  if (xxh3_64(file.data() + trailer.index_offset, trailer.count * kEntryBytes) !=
      trailer.index_checksum) {
    refuse(path, "has a damaged index: its checksum does not fit");
  }
  layout.entries = parse_index(file, trailer, first_byte, layout.header, path);
  layout.header_checksum = header_checksum;
  layout.index_checksum = trailer.index_checksum;
  return layout;
}

PackedFile::PackedFile(std::string path)
    : path_(std::move(path)),
      map_(map_shard(path_)),
      layout_(parse_packed({map_.data(), map_.size()}, path_)) {}

int64_t PackedFile::first_target(int64_t index) const {
  const PackedEntry& entry = layout_.entries.at(static_cast<size_t>(index));
  const uint64_t target_bytes =
      static_cast<uint64_t>(header().spec.targets_per_sample) * sizeof(int64_t);
  return number_at<int64_t>({map_.data(), map_.size()}, entry.offset + entry.bytes - target_bytes);
}

std::span<const unsigned char> PackedFile::sample(int64_t index, std::span<int64_t> targets) const {
  const PackedEntry& entry = layout_.entries.at(static_cast<size_t>(index));
  const unsigned char* bytes = map_.data() + entry.offset;
  const uint64_t checksum = xxh3_64(bytes, entry.bytes);
  if (checksum != entry.checksum) {
    throw DataError(cat("packed shard ", path_, ": sample ", index, " of ", size(), " (bytes ",
                        entry.offset, " to ", entry.offset + entry.bytes, ") has checksum ",
                        checksum, ", its index says ", entry.checksum,
                        ". Fix: copy the file again, or pack the data again"));
  }
  const uint64_t feature_bytes = entry.bytes - targets.size_bytes();
  std::memcpy(targets.data(), bytes + feature_bytes, targets.size_bytes());
  return {bytes, feature_bytes};
}

}  // namespace assay::data
