// TensorBoard's event file: decoded by an independent reader, and compared with bytes that
// TensorBoard's own writer made.
#include "trainer/metrics/tfevents.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <gmock/gmock.h>

#include "base/text.h"

namespace assay::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string hex_of(const std::string& bytes) {
  return hex_encode(std::span(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) {
    value = (value << 8) | static_cast<unsigned char>(bytes[i - 1]);
  }
  return value;
}

// Bit by bit, without a table.
uint32_t slow_masked_crc32c(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1u) != 0 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

// Fields of one protobuf message; values of varints and fixed numbers are their bits.
struct ProtoField {
  uint64_t number = 0;
  uint64_t bits = 0;
  std::string bytes;
};

uint64_t take_varint(std::string_view& rest) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(rest.at(0));
    rest.remove_prefix(1);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<ProtoField> decode_message(std::string_view rest) {
  std::vector<ProtoField> message;
  while (!rest.empty()) {
    const uint64_t key = take_varint(rest);
    ProtoField field{.number = key >> 3, .bits = 0, .bytes = {}};
    size_t size = 0;
    switch (key & 7) {
      case 0:
        field.bits = take_varint(rest);
        break;
      case 1:
        size = 8;
        break;
      case 2:
        size = take_varint(rest);
        break;
      case 5:
        size = 4;
        break;
      default:
        ADD_FAILURE() << "wire type " << (key & 7);
    }
    field.bytes = rest.substr(0, size);
    if ((key & 7) == 1 || (key & 7) == 5) field.bits = little_endian(field.bytes);
    rest.remove_prefix(size);
    message.push_back(field);
  }
  return message;
}

std::vector<std::string> decode_records(std::string_view rest) {
  std::vector<std::string> payloads;
  while (!rest.empty()) {
    const uint64_t size = little_endian(rest.substr(0, 8));
    EXPECT_EQ(little_endian(rest.substr(8, 4)), slow_masked_crc32c(rest.substr(0, 8)));
    const std::string_view payload = rest.substr(12, size);
    EXPECT_EQ(little_endian(rest.substr(12 + size, 4)), slow_masked_crc32c(payload));
    payloads.emplace_back(payload);
    rest.remove_prefix(16 + size);
  }
  return payloads;
}

// What a scalar event says; nothing for other events.
struct DecodedScalar {
  uint64_t step = 0;
  std::string tag;
  float value = 0;
};

std::optional<DecodedScalar> decode_scalar(std::string_view event) {
  DecodedScalar scalar;
  bool has_summary = false;
  for (const ProtoField& field : decode_message(event)) {
    if (field.number == 2) scalar.step = field.bits;
    if (field.number != 5) continue;
    has_summary = true;
    const std::vector<ProtoField> values = decode_message(field.bytes);
    for (const ProtoField& part : decode_message(values.at(0).bytes)) {
      const auto bits = static_cast<uint32_t>(part.bits);
      if (part.number == 1) scalar.tag = part.bytes;
      if (part.number == 2) std::memcpy(&scalar.value, &bits, sizeof(bits));
    }
  }
  return has_summary ? std::optional(scalar) : std::nullopt;
}

TEST(MaskedCrc, MatchesPublishedVectors) {
  // RFC 3720, appendix B.4: 32 bytes of zeros have the CRC-32C 0x8A9136AA.
  const uint32_t crc = 0x8A9136AAu;
  EXPECT_EQ(tfevents::masked_crc32c(std::string(32, '\0')),
            ((crc >> 15) | (crc << 17)) + 0xA282EAD8u);
  EXPECT_EQ(tfevents::masked_crc32c("123456789"), slow_masked_crc32c("123456789"));
}

// Recorded once from tensorboard 2.21.0 (tensorboard.summary.writer.record_writer.RecordWriter over
// the serialized Event messages of these values).
TEST(EventRecords, EqualTensorboardsOwnBytes) {
  EXPECT_EQ(hex_of(tfevents::record(tfevents::version_event(1700000000.25))),
            "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9");
  EXPECT_EQ(hex_of(tfevents::record(tfevents::session_start_event(1700000001.5, 16))),
            "0f000000000000006d532b090900006040fc54d94110103a020801fd71b5bd");
  EXPECT_EQ(hex_of(tfevents::record(
                tfevents::scalar_event(1700000002.5, 300, {"train/loss", 2.302585092994046}))),
            "2100000000000000017becf6090000a040fc54d94110ac022a130a110a0a747261696e2f6c6f737315"
            "8e5d134028a2df7f");
  EXPECT_EQ(hex_of(tfevents::record(tfevents::scalar_event(
                1700000003.5, 0, {"eval/accuracy", std::numeric_limits<double>::infinity()}))),
            "2100000000000000017becf6090000e040fc54d9412a160a140a0d6576616c2f616363757261637915"
            "0000807f20707416");
}

TEST(TensorboardWriter, WritesWhatAReaderDecodes) {
  const TemporaryFolder folder;
  TensorboardWriter writer(folder.path());
  const Scalar first[] = {{"train/loss", 0.5}, {"train/grad_norm", std::nan("")}};
  const Scalar second[] = {{"eval/accuracy", 0.25}};
  writer.append(1, first);
  writer.append(int64_t{1} << 40, second);
  writer.sync();
  const std::vector<std::string> events = decode_records(read_file(writer.path()));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_THAT(events[0], HasSubstr("brain.Event:2"));
  EXPECT_EQ(decode_scalar(events[0]), std::nullopt);
  EXPECT_EQ(decode_scalar(events[1])->tag, "train/loss");
  EXPECT_EQ(decode_scalar(events[1])->step, 1u);
  EXPECT_EQ(decode_scalar(events[1])->value, 0.5f);
  EXPECT_TRUE(std::isnan(decode_scalar(events[2])->value));
  EXPECT_EQ(decode_scalar(events[3])->step, uint64_t{1} << 40);
}

TEST(TensorboardWriter, NamesItsFileAsTensorboardExpects) {
  const TemporaryFolder folder;
  const TensorboardWriter first(folder.path());
  const TensorboardWriter second(folder.path());
  EXPECT_LT(first.path(), second.path());  // TensorBoard reads them in this order
  const std::vector<std::string> names = list_directory(folder.path());
  ASSERT_EQ(names.size(), 2u);
  for (const std::string& name : names) {
    EXPECT_THAT(name, StartsWith("events.out.tfevents."));
    EXPECT_EQ(name.find('/'), std::string::npos);
  }
}

TEST(TensorboardWriter, AnnouncesAResumeSoThatLaterStepsAreDropped) {
  const TemporaryFolder folder;
  const TensorboardWriter writer(folder.path(), 15);
  const std::vector<std::string> events = decode_records(read_file(writer.path()));
  ASSERT_EQ(events.size(), 2u);
  const std::vector<ProtoField> session = decode_message(events[1]);
  ASSERT_EQ(session.size(), 3u);
  EXPECT_EQ(session[1].number, 2u);
  EXPECT_EQ(session[1].bits, 16u);
  EXPECT_EQ(session[2].number, 7u);
  EXPECT_EQ(session[2].bytes, std::string("\x08\x01"));
}

TEST(TensorboardWriter, NamesTheFolderItCannotWriteIn) {
  const TemporaryFolder folder;
  const std::string missing = join_path(folder.path(), "missing");
  try {
    const TensorboardWriter writer(missing);
    FAIL() << "an event file was made in a missing folder";
  } catch (const FileError& error) {
    EXPECT_THAT(error.what(), HasSubstr(missing));
  }
}

}  // namespace
}  // namespace assay::metrics
