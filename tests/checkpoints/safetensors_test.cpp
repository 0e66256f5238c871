#include "checkpoints/safetensors.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/error.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

const std::vector<std::string> kAllDtypes = {"F64", "F32", "F16", "BF16", "I64",
                                             "I32", "I16", "I8",  "U8",   "BOOL"};

struct RandomTensors {
  std::vector<TensorView> views;
  std::deque<std::vector<unsigned char>> storage;
};

void fill_random(RandomTensors& tensors, std::mt19937_64& random) {
  const size_t count = random() % 12;
  for (size_t index = 0; index < count; ++index) {
    TensorView view;
    view.name = cat("layer ", index, "/\"w\" \\ \xc3\xa9", random() % 1000);
    view.dtype = kAllDtypes[random() % kAllDtypes.size()];
    uint64_t elements = 1;
    for (size_t rank = random() % 4; rank > 0; --rank) {
      view.shape.push_back(static_cast<int64_t>(random() % 6));
      elements *= static_cast<uint64_t>(view.shape.back());
    }
    view.byte_count = elements * dtype_bytes(view.dtype);
    tensors.storage.emplace_back(view.byte_count);
    for (unsigned char& byte : tensors.storage.back()) {
      byte = static_cast<unsigned char>(view.dtype == "BOOL" ? random() % 2 : random());
    }
    view.bytes = tensors.storage.back().data();
    tensors.views.push_back(std::move(view));
  }
}

TEST(Safetensors, RandomTensorsComeBackBitForBit) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(cat("seed ", seed));
  std::mt19937_64 random(seed);
  const TemporaryFolder folder;
  for (int round = 0; round < 60; ++round) {
    RandomTensors given;
    fill_random(given, random);
    const std::string path = join_path(folder.path(), cat(round, ".safetensors"));
    const WrittenFile written = write_safetensors(path, given.views, {{"step", "3"}}, "");
    const SafetensorsFile file(path);
    ASSERT_EQ(file.bytes(), written.bytes);
    ASSERT_EQ(xxh3_hex(file.data(), file.bytes()), written.xxh3);
    ASSERT_EQ(written.tensors.size(), given.views.size());
    ASSERT_EQ(file.tensors().size(), given.views.size());
    for (size_t index = 0; index < given.views.size(); ++index) {
      const TensorView& before = given.views[index];
      const TensorView* after = file.find(before.name);
      ASSERT_NE(after, nullptr) << before.name;
      EXPECT_EQ(after->dtype, before.dtype);
      EXPECT_EQ(after->shape, before.shape);
      ASSERT_EQ(after->byte_count, before.byte_count);
      if (before.byte_count > 0) {
        EXPECT_EQ(std::memcmp(after->bytes, before.bytes, before.byte_count), 0) << before.name;
      }
      EXPECT_EQ(written.tensors[index].xxh3, xxh3_hex(before.bytes, before.byte_count));
    }
  }
}

TEST(Safetensors, DataStartsAlignedBehindAPaddedHeader) {
  const TemporaryFolder folder;
  const float value = 1.5F;
  for (size_t length = 1; length < 20; ++length) {
    const std::string path = join_path(folder.path(), cat(length));
    write_safetensors(path, {{std::string(length, 'n'), "F32", {}, &value, sizeof value}}, {}, "");
    const std::string bytes = read_file(path);
    EXPECT_EQ((bytes.size() - sizeof value) % 8, 0U);
    EXPECT_EQ(bytes[8], '{');
    EXPECT_EQ(std::memcmp(bytes.data() + bytes.size() - sizeof value, &value, sizeof value), 0);
  }
}

TEST(Safetensors, MetadataSaysWhatPythonAsksFor) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "m");
  write_safetensors(path, {}, {{"step", "7"}}, "");
  const SafetensorsFile file(path);
  const std::map<std::string, std::string> expected = {{"format", "pt"}, {"step", "7"}};
  EXPECT_EQ(file.metadata(), expected);
  EXPECT_TRUE(file.tensors().empty());
}

TEST(Safetensors, TensorLargerThanAChunkKeepsItsChecksums) {
  const TemporaryFolder folder;
  std::vector<uint32_t> values((uint64_t{9} << 20) / sizeof(uint32_t) + 3);
  for (size_t index = 0; index < values.size(); ++index)
    values[index] = static_cast<uint32_t>(index);
  const TensorView tensor{"w",
                          "I32",
                          {static_cast<int64_t>(values.size())},
                          values.data(),
                          values.size() * sizeof(uint32_t)};
  const std::string path = join_path(folder.path(), "large");
  const WrittenFile written = write_safetensors(path, {tensor}, {}, "");
  EXPECT_EQ(written.tensors[0].xxh3, xxh3_hex(values.data(), tensor.byte_count));
  const SafetensorsFile file(path);
  EXPECT_EQ(xxh3_hex(file.data(), file.bytes()), written.xxh3);
  EXPECT_EQ(std::memcmp(file.tensors()[0].bytes, values.data(), tensor.byte_count), 0);
}

TEST(Safetensors, ShortWritesLoseNothing) {
  const TemporaryFolder folder;
  const SampleState state;
  const std::string plain = join_path(folder.path(), "plain");
  const std::string torn = join_path(folder.path(), "torn");
  const WrittenFile expected = write_safetensors(plain, state.parts.model, {}, "");
  const ArmedFaults faults("checkpoint.model.write:1+=short");
  const WrittenFile written = write_safetensors(torn, state.parts.model, {}, "checkpoint.model");
  EXPECT_EQ(written.xxh3, expected.xxh3);
  EXPECT_EQ(read_file(torn), read_file(plain));
}

TEST(Safetensors, WriterRefusesTensorsThatContradictThemselves) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "x");
  const float value = 0;
  const auto message = [&](const std::vector<TensorView>& tensors) {
    return thrown_message<InternalError>([&] { write_safetensors(path, tensors, {}, ""); });
  };
  EXPECT_THAT(message({{"a", "F32", {2}, &value, 4}}), testing::HasSubstr("has 4 bytes, not 8"));
  EXPECT_THAT(message({{"a", "F31", {1}, &value, 4}}), testing::HasSubstr("F31"));
  EXPECT_THAT(message({{"a", "F32", {}, &value, 4}, {"a", "F32", {}, &value, 4}}),
              testing::HasSubstr("twice"));
  EXPECT_THAT(message({{"a\nb", "F32", {}, &value, 4}}), testing::HasSubstr("control character"));
  EXPECT_THAT(message({{"__metadata__", "F32", {}, &value, 4}}), testing::HasSubstr("reserves"));
  EXPECT_THAT(message({{"a", "F32", {}, nullptr, 4}}), testing::HasSubstr("no bytes"));
  EXPECT_FALSE(path_exists(path));
}

TEST(Safetensors, ReadsAFileThatPythonWrote) {
  const SafetensorsFile file(cat(ASSAY_SOURCE_DIR, "/tests/golden/python_0_8_0.safetensors"));
  ASSERT_EQ(file.tensors().size(), kAllDtypes.size() + 1);
  EXPECT_EQ(file.metadata().at("written_by"), "safetensors 0.8.0");
  for (const std::string& dtype : kAllDtypes) {
    const TensorView* tensor = file.find("t/" + dtype);
    ASSERT_NE(tensor, nullptr) << dtype;
    EXPECT_EQ(tensor->dtype, dtype);
    EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(tensor->byte_count, 6 * dtype_bytes(dtype));
  }
  const TensorView* counted = file.find("t/F32");
  for (size_t index = 0; index < 6; ++index) {
    float value = 0;
    std::memcpy(&value, static_cast<const char*>(counted->bytes) + index * sizeof value,
                sizeof value);
    EXPECT_EQ(value, static_cast<float>(index) + 0.5F);
  }
  EXPECT_TRUE(file.find("empty")->shape == std::vector<int64_t>({0, 4}));
}

}  // namespace
}  // namespace assay::checkpoints
