// Files from anybody: every lie in a header is refused before anything is used.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoints/safetensors.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string with_length(uint64_t length, std::string_view rest) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8)
    bytes.push_back(static_cast<char>(length >> shift & 0xff));
  return bytes.append(rest);
}

std::string container(std::string_view header, std::string_view data) {
  return with_length(header.size(), std::string(header).append(data));
}

// The message with which a file of these bytes is refused.
std::string refusal(std::string_view bytes) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "bad.safetensors");
  write_plain(path, bytes);
  const std::string message = thrown_message<CheckpointError>([&] { SafetensorsFile file(path); });
  EXPECT_THAT(message, AllOf(HasSubstr("bad.safetensors"), HasSubstr("Fix: "))) << bytes;
  return message;
}

std::string refusal_of_entry(std::string_view entry, std::string_view data = "12345678") {
  return refusal(container(cat("{\"w\":", entry, "}"), data));
}

TEST(SafetensorsHostile, RefusesHeaderLengthsThatLie) {
  const std::string header = "{}";
  EXPECT_THAT(refusal(""), HasSubstr("has 0 bytes"));
  EXPECT_THAT(refusal("1234567"), HasSubstr("has 7 bytes"));
  EXPECT_THAT(refusal(with_length(UINT64_MAX, header)), HasSubstr("18446744073709551615"));
  EXPECT_THAT(refusal(with_length(uint64_t{1} << 63, header)), HasSubstr("9223372036854775808"));
  EXPECT_THAT(refusal(with_length(100'000'001, header)), HasSubstr("100000001"));
  EXPECT_THAT(refusal(with_length(3, header)), HasSubstr("only 2 follow"));
  EXPECT_THAT(refusal(with_length(UINT64_MAX - 7, header)), HasSubstr("at most 100000000"));
  EXPECT_THAT(refusal(with_length(0, "")), HasSubstr("does not start with {"));
}

TEST(SafetensorsHostile, RefusesOffsetsThatLie) {
  const auto entry = [](std::string_view offsets) {
    return cat("{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":", offsets, "}");
  };
  const auto refused = [&](std::string_view offsets) {
    return refusal_of_entry(entry(offsets), "1234");
  };
  EXPECT_THAT(refused("[-1,4]"), HasSubstr("w.data_offsets"));
  EXPECT_THAT(refused("[8,4]"), AllOf(HasSubstr("ends at 4"), HasSubstr("begins at 8")));
  EXPECT_THAT(refused("[0,9223372036854775808]"), HasSubstr("w.data_offsets"));
  EXPECT_THAT(refused("[18446744073709551612,18446744073709551616]"), HasSubstr("w.data_offsets"));
  EXPECT_THAT(refused("[18446744073709551611,18446744073709551615]"), HasSubstr("past the end"));
  EXPECT_THAT(refused("[1,5]"), HasSubstr("past the end of the data of 4 bytes"));
  EXPECT_THAT(refused("[]"), HasSubstr("two integers"));
  EXPECT_THAT(refused("[0]"), HasSubstr("two integers"));
  EXPECT_THAT(refused("[0,4,4]"), HasSubstr("two integers"));
  EXPECT_THAT(refused("[0,\"4\"]"), HasSubstr("two integers"));
  EXPECT_THAT(refused("[0,4.0]"), HasSubstr("two integers"));
  EXPECT_THAT(refused("\"0,4\""), HasSubstr("must be an array"));
  EXPECT_THAT(refused("[0,3]"), AllOf(HasSubstr("spans 3 bytes"), HasSubstr("has 4")));
}

TEST(SafetensorsHostile, RefusesOverlapsHolesAndRests) {
  const auto pair = [](std::string_view first, std::string_view second, std::string_view data) {
    return refusal(
        container(cat("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":", first,
                      "},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":", second, "}}"),
                  data));
  };
  EXPECT_THAT(pair("[0,4]", "[2,6]", "123456"), AllOf(HasSubstr("\"b\""), HasSubstr("overlap")));
  EXPECT_THAT(pair("[0,4]", "[0,4]", "1234"), HasSubstr("overlap"));
  EXPECT_THAT(pair("[0,4]", "[5,9]", "123456789"), AllOf(HasSubstr("\"b\""), HasSubstr("hole")));
  EXPECT_THAT(pair("[1,5]", "[5,9]", "123456789"), AllOf(HasSubstr("\"a\""), HasSubstr("hole")));
  EXPECT_THAT(pair("[0,4]", "[4,8]", "123456789"), HasSubstr("1 bytes after the last tensor"));
  EXPECT_THAT(refusal(container("{}", "rest")), HasSubstr("4 bytes after"));
}

TEST(SafetensorsHostile, RefusesShapesAndTypesThatLie) {
  const auto refused = [](std::string_view dtype, std::string_view shape) {
    return refusal_of_entry(
        cat("{\"dtype\":", dtype, ",\"shape\":", shape, ",\"data_offsets\":[0,8]}"));
  };
  EXPECT_THAT(refused("\"F8_E4M3\"", "[8]"), AllOf(HasSubstr("F8_E4M3"), HasSubstr("w.dtype")));
  EXPECT_THAT(refused("4", "[8]"), HasSubstr("must be a text"));
  EXPECT_THAT(refused("\"U8\"", "[-8]"), HasSubstr("w.shape"));
  EXPECT_THAT(refused("\"U8\"", "8"), HasSubstr("must be an array"));
  EXPECT_THAT(refused("\"U8\"", "[8.0]"), HasSubstr("w.shape"));
  EXPECT_THAT(refused("\"U8\"", "[4294967296,4294967296]"), HasSubstr("too large"));
  EXPECT_THAT(refused("\"F64\"", "[4611686018427387905]"), HasSubstr("too large"));
  EXPECT_THAT(refused("\"U8\"", "[18446744073709551615]"), HasSubstr("w.shape"));
  // A dimension of zero must not hide that the others cannot be counted.
  EXPECT_THAT(refused("\"U8\"", "[0,9223372036854775807,9223372036854775807]"),
              HasSubstr("too large"));
  EXPECT_THAT(refused("\"BOOL\"", "[8]"), AllOf(HasSubstr("the byte 49"), HasSubstr("element 0")));
}

TEST(SafetensorsHostile, RefusesHeadersThatAreNoTable) {
  EXPECT_THAT(refusal(container("{\"w\":3}  ", "")), HasSubstr("must be an object"));
  EXPECT_THAT(refusal(container("{\"w\":{}} ", "")), HasSubstr("\"w.dtype\" is missing"));
  EXPECT_THAT(refusal(container("[1,2,3] ", "")), HasSubstr("does not start with {"));
  refusal(container("{\"w\":", ""));
  refusal(container("{\"\xff\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", ""));
  const std::string empty = "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
  refusal(container(cat("{\"a\":", empty, ",\"a\":", empty, "}"), ""));
  EXPECT_THAT(refusal(container(cat("{\"\":", empty, "}"), "")), HasSubstr("empty name"));
  EXPECT_THAT(refusal(container(cat("{\"a\\u0000b\":", empty, "}"), "")),
              HasSubstr("control character"));
  EXPECT_THAT(refusal(container("{\"__metadata__\":{\"step\":3}}", "")),
              HasSubstr("__metadata__.step"));
  EXPECT_THAT(refusal(container("{\"__metadata__\":[]}", "")), HasSubstr("must be an object"));
  EXPECT_THAT(refusal_of_entry("{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8],\"x\":1}"),
              HasSubstr("\"w.x\" is unknown"));
  std::string deep = "{\"w\":";
  deep += std::string(5000, '[') + std::string(5000, ']') + "}";
  refusal(container(deep, ""));
}

TEST(SafetensorsHostile, NamesPicklesAndHowToConvertThem) {
  for (const std::string& magic :
       {std::string("PK\x03\x04 archive/data.pkl", 19),
        std::string("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"),
        std::string("\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}", 12)}) {
    EXPECT_THAT(refusal(magic), AllOf(HasSubstr("never read"), HasSubstr("weights_only=True"),
                                      HasSubstr("save_file")));
  }
  EXPECT_THAT(refusal("\x1f\x8b\x08 gzip bytes"), HasSubstr("gzip -d"));
  EXPECT_THAT(refusal("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("git lfs pull"));
}

TEST(SafetensorsHostile, TakesAHeaderWhoseLengthLooksLikeAPickle) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "f");
  write_plain(path, container("{}" + std::string(0x280 - 2, ' '), ""));  // begins with 80 02
  EXPECT_TRUE(SafetensorsFile(path).tensors().empty());
}

TEST(SafetensorsHostile, PutsNoForeignTextIntoTheCommandToPaste) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "x'$(reboot)'.pt");
  write_plain(path, "PK\x03\x04 and more");
  const std::string message = thrown_message<CheckpointError>([&] { SafetensorsFile file(path); });
  EXPECT_THAT(message, HasSubstr("torch.load('FILE'"));
}

TEST(SafetensorsHostile, MissingFileAndFolderAreNamed) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "none.safetensors");
  EXPECT_THAT(thrown_message<CheckpointError>([&] { SafetensorsFile file(path); }),
              AllOf(HasSubstr(path), HasSubstr("Fix: ")));
  EXPECT_THROW(SafetensorsFile(folder.path()), CheckpointError);
}

// Every truncation and every single-byte change of a header is refused or gives tensors that lie
// within the file.
void expect_refused_or_sound(const std::string& path) {
  try {
    const SafetensorsFile file(path);
    const auto* begin = file.data();
    for (const TensorView& tensor : file.tensors()) {
      const auto* bytes = static_cast<const unsigned char*>(tensor.bytes);
      ASSERT_GE(bytes, begin);
      ASSERT_LE(tensor.byte_count, file.bytes());
      ASSERT_LE(bytes + tensor.byte_count, begin + file.bytes());
      ASSERT_GT(dtype_bytes(tensor.dtype), 0U);
    }
  } catch (const CheckpointError&) {
    SUCCEED();
  }
}

TEST(SafetensorsHostile, EveryTruncationIsRefused) {
  const TemporaryFolder folder;
  const SampleState state;
  const std::string whole = join_path(folder.path(), "whole");
  write_safetensors(whole, state.parts.model, {}, "");
  const std::string bytes = read_file(whole);
  const std::string path = join_path(folder.path(), "cut");
  for (size_t size = 0; size < bytes.size(); ++size) {
    write_plain(path, std::string_view(bytes).substr(0, size));
    EXPECT_THROW(SafetensorsFile file(path), CheckpointError) << size;
  }
}

std::string mutated(std::string header, std::mt19937_64& random) {
  static const std::vector<std::string> kPieces = {"-1",
                                                   "18446744073709551615",
                                                   "9223372036854775808",
                                                   "1e3",
                                                   "null",
                                                   "[",
                                                   "]",
                                                   "{",
                                                   "}",
                                                   ",",
                                                   ":",
                                                   "\"",
                                                   "\\u0000",
                                                   "\xff",
                                                   "\"dtype\"",
                                                   "\"shape\":[0]",
                                                   "[[[[[[[[",
                                                   "0.5",
                                                   "true",
                                                   "\"F64\"",
                                                   "\n"};
  for (uint64_t count = 1 + random() % 3; count > 0; --count) {
    const size_t place = random() % header.size();
    switch (random() % 4) {
      case 0:
        header[place] = static_cast<char>(random());
        break;
      case 1:
        header.erase(place, 1 + random() % 8);
        break;
      case 2:
        header.insert(place, kPieces[random() % kPieces.size()]);
        break;
      default:
        header.replace(place, 1, kPieces[random() % kPieces.size()]);
        break;
    }
    if (header.empty()) header = "{";
  }
  return header;
}

TEST(SafetensorsHostile, MutatedHeadersNeverCrash) {
  constexpr int kRounds = 20'000;
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(cat("seed ", seed));
  std::mt19937_64 random(seed);
  const TemporaryFolder folder;
  const SampleState state;
  const std::string path = join_path(folder.path(), "f");
  write_safetensors(path, state.parts.model, {}, "");
  const std::string bytes = read_file(path);
  const size_t data_start = bytes.rfind('}') + 1;
  const std::string header = bytes.substr(8, data_start - 8);
  const std::string data = bytes.substr(data_start);
  for (int round = 0; round < kRounds && !testing::Test::HasFatalFailure(); ++round) {
    write_plain(path, container(mutated(header, random), data));
    expect_refused_or_sound(path);
  }
}

}  // namespace
}  // namespace assay::checkpoints
