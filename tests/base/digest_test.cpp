#include "base/digest.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256_blocks.h"
#include "base/text.h"

namespace assay {
namespace {

using testing::HasSubstr;

std::string random_bytes(std::mt19937_64& random, size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// FIPS 180-2 appendix B and the NIST example values.
TEST(Sha256, GivesThePublishedValues) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE(cat("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 200; ++round) {
    const std::string bytes = random_bytes(random, random() % 700);
    Sha256 pieces;
    for (size_t done = 0; done < bytes.size();) {
      const size_t count = std::min<size_t>(random() % 150, bytes.size() - done);
      pieces.update(bytes.data() + done, count);
      done += count;
    }
    ASSERT_EQ(pieces.hex(), sha256_hex(bytes)) << "length " << bytes.size();
  }
}

TEST(Sha256, IsTheSameWithAndWithoutExtensions) {
  if (!has_sha_extensions()) GTEST_SKIP() << "this CPU has no SHA extensions";
  constexpr uint64_t kSeed = 13;
  SCOPED_TRACE(cat("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 500; ++round) {
    Sha256State portable;
    for (uint32_t& word : portable) word = static_cast<uint32_t>(random());
    Sha256State accelerated = portable;
    const size_t block_count = random() % 9;
    // One byte more in front, so that the blocks are not aligned.
    const std::string bytes = random_bytes(random, 64 * block_count + 1);
    const auto blocks = std::vector<unsigned char>(bytes.begin(), bytes.end());
    sha256_compress_portable(portable, blocks.data() + 1, block_count);
    sha256_compress_extensions(accelerated, blocks.data() + 1, block_count);
    ASSERT_EQ(portable, accelerated) << block_count << " blocks";
  }
}

TEST(Sha256, ReadsFilesOfAnyLength) {
  const TemporaryFolder folder;
  std::mt19937_64 random(17);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1} << 18, (size_t{1} << 18) + 63}) {
    const std::string path = join_path(folder.path(), cat("file-", count));
    const std::string bytes = random_bytes(random, count);
    FileWriter writer(path, "config");
    writer.write(bytes);
    writer.close();
    EXPECT_EQ(sha256_file_hex(path), sha256_hex(bytes));
  }
}

TEST(Sha256, NamesTheFileThatCannotBeRead) {
  const TemporaryFolder folder;
  for (const std::string& path : {join_path(folder.path(), "missing"), folder.path()}) {
    try {
      sha256_file_hex(path);
      FAIL() << "no error for " << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kData);
      EXPECT_THAT(error.what(), HasSubstr(path));
    }
  }
}

// Values of the xxHash 0.8 test program (xxhsum -H2) for the same input.
TEST(Xxh3, GivesThePublishedValues) {
  EXPECT_EQ(xxh3_hex("", 0), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(xxh3_hex("abc", 3), "06b05ab6733a618578af5f94892f3950");
}

TEST(Xxh3, DoesNotDependOnThePieces) {
  constexpr uint64_t kSeed = 19;
  SCOPED_TRACE(cat("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  Xxh3 pieces;
  for (int round = 0; round < 100; ++round) {
    const std::string bytes = random_bytes(random, random() % 5000);
    pieces.reset();
    for (size_t done = 0; done < bytes.size();) {
      const size_t count = std::min<size_t>(random() % 900, bytes.size() - done);
      pieces.update(bytes.data() + done, count);
      done += count;
    }
    ASSERT_EQ(pieces.hex(), xxh3_hex(bytes.data(), bytes.size())) << "length " << bytes.size();
  }
}

TEST(Digests, SeeEverySingleBit) {
  std::string bytes(200, 'x');
  const std::string sha = sha256_hex(bytes);
  const std::string xxh = xxh3_hex(bytes.data(), bytes.size());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    char& byte = bytes[bit / 8];
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    ASSERT_NE(sha256_hex(bytes), sha) << "bit " << bit;
    ASSERT_NE(xxh3_hex(bytes.data(), bytes.size()), xxh) << "bit " << bit;
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
  }
}

}  // namespace
}  // namespace assay
