// Packed shards: header, index and trailer.
#include <cstring>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "data/packed_file.h"
#include "data/packed_writer.h"
#include "tests/fuzz/fuzz_driver.h"

namespace assay::fuzz {
namespace {

std::string shard(data::PackedContent content) {
  const TemporaryFolder folder("assay-fuzz");
  const std::string path = join_path(folder.path(), "x.packed");
  data::PackedHeader header;
  header.source = "fuzz";
  header.source_digest = "d";
  header.split = "train";
  header.num_samples = 3;
  header.content = content;
  header.spec.num_classes = 10;
  if (content == data::PackedContent::kRaw) header.spec.feature_shape = {1, 2, 2};
  data::PackedWriter writer(path, header);
  for (int64_t i = 0; i < 3; ++i) {
    const unsigned char features[4] = {1, 2, 3, static_cast<unsigned char>(i)};
    writer.add(features, {&i, 1});
  }
  writer.commit();
  return read_file(path);
}

void run(const std::string& input) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(input.data());
  const data::PackedLayout layout = data::parse_packed({bytes, input.size()}, "fuzz.packed");
  for (const data::PackedEntry& entry : layout.entries) {
    if (entry.offset > input.size() || entry.bytes > input.size() - entry.offset) {
      throw InternalError("a sample lies beyond the end");
    }
  }
}

void put(std::string& input, size_t place, uint64_t value) {
  std::memcpy(input.data() + place, &value, sizeof(value));
}

// Makes the checksums of header, index and trailer fit, as far as their places make sense.
void repair(std::string& input) {
  if (input.size() < data::kPackedFirstSample + data::kPackedTrailerBytes) return;
  const size_t trailer = input.size() - data::kPackedTrailerBytes;
  uint32_t header_bytes = 0;
  uint64_t index_offset = 0;
  std::memcpy(&header_bytes, input.data() + 12, sizeof(header_bytes));
  std::memcpy(&index_offset, input.data() + trailer, sizeof(index_offset));
  if (header_bytes <= trailer - data::kPackedPrefixBytes) {
    const uint64_t checksum = xxh3_64(input.data() + data::kPackedPrefixBytes, header_bytes);
    put(input, 16, checksum);
    put(input, trailer + 32, checksum);
  }
  if (index_offset <= trailer) {
    put(input, trailer + 16, xxh3_64(input.data() + index_offset, trailer - index_offset));
  }
  put(input, trailer + 24, input.size());
  put(input, trailer + 48, xxh3_64(input.data() + trailer, 48));
  input.replace(trailer + 56, 8, data::kPackedEnd);
}

}  // namespace
}  // namespace assay::fuzz

int main(int count, char** words) {
  assay::fuzz::Target target;
  target.run = assay::fuzz::run;
  target.repair = assay::fuzz::repair;
  target.seeds = {assay::fuzz::shard(assay::data::PackedContent::kRaw),
                  assay::fuzz::shard(assay::data::PackedContent::kEncoded)};
  target.dictionary = {
      "ASSAYPAK", "ASSAYEND", "\"num_samples\":", "99999999", "[1,2,2]", "\"encoded\"", "-1", "1e9",
      "{",        "[["};
  return assay::fuzz::run_target(target, count, words);
}
