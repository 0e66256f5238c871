#include "data/packed_writer.h"

#include <cstring>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"

namespace assay::data {
namespace {

template <class Number>
void append(std::string& bytes, Number number) {
  char raw[sizeof(number)];
  std::memcpy(raw, &number, sizeof(number));
  bytes.append(raw, sizeof(number));
}

}  // namespace

PackedWriter::PackedWriter(const std::string& path, const PackedHeader& header)
    : header_(header), output_(path) {
  const std::string json = packed_header_json(header_);
  header_checksum_ = xxh3_64(json.data(), json.size());
  std::string start(kPackedStart);
  append(start, kPackedVersion);
  append(start, static_cast<uint32_t>(json.size()));
  append(start, header_checksum_);
  output_.write(start + json);
  pad_to(kPackedFirstSample);
}

void PackedWriter::pad_to(uint64_t alignment) {
  const uint64_t over = output_.written_bytes() % alignment;
  if (over > 0) output_.write(std::string(static_cast<size_t>(alignment - over), '\0'));
}

void PackedWriter::add(std::span<const unsigned char> features, std::span<const int64_t> targets) {
  pad_to(kPackedAlignment);
  sample_.resize(features.size() + targets.size_bytes());
  std::memcpy(sample_.data(), features.data(), features.size());
  std::memcpy(sample_.data() + features.size(), targets.data(), targets.size_bytes());
  entries_.push_back(
      {output_.written_bytes(), sample_.size(), xxh3_64(sample_.data(), sample_.size())});
  output_.write(sample_.data(), sample_.size());
}

void PackedWriter::commit() {
  if (static_cast<int64_t>(entries_.size()) != header_.num_samples) {
    throw InternalError(
        cat("a packed shard of ", header_.num_samples, " samples got ", entries_.size()));
  }
  pad_to(kPackedAlignment);
  const uint64_t index_offset = output_.written_bytes();
  std::string index;
  for (const PackedEntry& entry : entries_) {
    append(index, entry.offset);
    append(index, entry.bytes);
    append(index, entry.checksum);
  }
  output_.write(index);
  std::string trailer;
  append(trailer, index_offset);
  append(trailer, static_cast<uint64_t>(entries_.size()));
  append(trailer, xxh3_64(index.data(), index.size()));
  append(trailer, output_.written_bytes() + kPackedTrailerBytes);
  append(trailer, header_checksum_);
  append(trailer, uint64_t{0});
  append(trailer, xxh3_64(trailer.data(), trailer.size()));
  trailer += kPackedEnd;
  output_.write(trailer);
  output_.commit();
}

}  // namespace assay::data
