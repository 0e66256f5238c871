#include "trainer/metrics/tfevents.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <optional>

#include <unistd.h>

#include "base/text.h"

namespace assay::metrics {
namespace {

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto.
constexpr uint32_t kEventWallTime = 1;
constexpr uint32_t kEventStep = 2;
constexpr uint32_t kEventFileVersion = 3;
constexpr uint32_t kEventSummary = 5;
constexpr uint32_t kEventSessionLog = 7;
constexpr uint32_t kSessionLogStatus = 1;
constexpr uint32_t kSummaryValue = 1;
constexpr uint32_t kValueTag = 1;
constexpr uint32_t kValueSimpleValue = 2;
constexpr uint64_t kSessionStart = 1;

enum class WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr std::array<uint32_t, 256> crc_table() {
  constexpr uint32_t kReversedPolynomial = 0x82F63B78u;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1u) != 0 ? kReversedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

template <class Unsigned>
void append_little_endian(std::string& out, Unsigned value) {
  for (size_t i = 0; i < sizeof(Unsigned); ++i) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(value >> (8 * i))));
  }
}

void append_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(value | 0x80)));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void append_key(std::string& out, uint32_t field, WireType type) {
  append_varint(out, (field << 3) | static_cast<uint32_t>(type));
}

void append_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  append_key(out, field, WireType::kBytes);
  append_varint(out, bytes.size());
  out.append(bytes);
}

// wall_time and, if it is not the default 0, step.
std::string event_head(double wall_seconds, int64_t step) {
  std::string event;
  append_key(event, kEventWallTime, WireType::kFixed64);
  append_little_endian(event, std::bit_cast<uint64_t>(wall_seconds));
  if (step != 0) {
    append_key(event, kEventStep, WireType::kVarint);
    append_varint(event, static_cast<uint64_t>(step));
  }
  return event;
}

// Stamps are wall-clock time by definition of the format; nothing is measured with them.
double wall_seconds_now() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since_epoch).count();
}

std::string host_name() {
  std::array<char, 256> buffer{};
  if (::gethostname(buffer.data(), buffer.size() - 1) != 0) return "localhost";
  std::string name(buffer.data());
  for (char& letter : name) {
    const bool is_plain = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
                          (letter >= 'A' && letter <= 'Z') || letter == '-' || letter == '.';
    if (!is_plain) letter = '_';
  }
  return name.empty() ? "localhost" : name;
}

// The path of a new event file. TensorBoard reads a folder's files in the order of their names, so
// that a second already named by an earlier session (or a clock set back) gives way to a later one.
std::string next_path(const std::string& folder, int64_t wall_seconds) {
  constexpr std::string_view kStem = "events.out.tfevents.";
  for (const std::string& name : list_directory(folder)) {
    if (!name.starts_with(kStem)) continue;
    const std::string_view rest = std::string_view(name).substr(kStem.size());
    const std::optional<int64_t> seconds = parse_int64(rest.substr(0, rest.find('.')));
    if (seconds) wall_seconds = std::max(wall_seconds, *seconds + 1);
  }
  return join_path(folder, cat(kStem, wall_seconds, ".", host_name(), ".", ::getpid(), ".0"));
}

}  // namespace

namespace tfevents {

uint32_t masked_crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : bytes) {
    crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xFFu] ^ (crc >> 8);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

std::string record(std::string_view payload) {
  std::string framed;
  append_little_endian(framed, static_cast<uint64_t>(payload.size()));
  append_little_endian(framed, masked_crc32c(framed));
  framed.append(payload);
  append_little_endian(framed, masked_crc32c(payload));
  return framed;
}

std::string version_event(double wall_seconds) {
  std::string event = event_head(wall_seconds, 0);
  append_bytes(event, kEventFileVersion, "brain.Event:2");
  return event;
}

std::string session_start_event(double wall_seconds, int64_t step) {
  std::string session_log;
  append_key(session_log, kSessionLogStatus, WireType::kVarint);
  append_varint(session_log, kSessionStart);
  std::string event = event_head(wall_seconds, step);
  append_bytes(event, kEventSessionLog, session_log);
  return event;
}

std::string scalar_event(double wall_seconds, int64_t step, const Scalar& scalar) {
  std::string value;
  append_bytes(value, kValueTag, scalar.tag);
  append_key(value, kValueSimpleValue, WireType::kFixed32);
  append_little_endian(value, std::bit_cast<uint32_t>(static_cast<float>(scalar.value)));
  std::string summary;
  append_bytes(summary, kSummaryValue, value);
  std::string event = event_head(wall_seconds, step);
  append_bytes(event, kEventSummary, summary);
  return event;
}

}  // namespace tfevents

TensorboardWriter::TensorboardWriter(const std::string& folder, int64_t first_step) {
  const double now = wall_seconds_now();
  path_ = next_path(folder, static_cast<int64_t>(now));
  file_ = std::make_unique<AppendFile>(path_, "events");
  std::string head = tfevents::record(tfevents::version_event(now));
  if (first_step > 0) head += tfevents::record(tfevents::session_start_event(now, first_step + 1));
  file_->append(head);
}

void TensorboardWriter::append(int64_t step, std::span<const Scalar> scalars) {
  const double now = wall_seconds_now();
  std::string records;
  for (const Scalar& scalar : scalars) {
    records += tfevents::record(tfevents::scalar_event(now, step, scalar));
  }
  file_->append(records);
}

void TensorboardWriter::sync() { file_->sync(); }

}  // namespace assay::metrics
