#include "data/idx.h"

#include <algorithm>
#include <iostream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/gzip.h"
#include "tests/data/idx_files.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string parse_refusal(const std::string& content, IdxKind kind = IdxKind::kImages) {
  return thrown_message<DataError>([&] { parse_idx(content, "folder/x-ubyte", kind); });
}

std::string with_byte(std::string content, size_t place, int value) {
  content[place] = static_cast<char>(value);
  return content;
}

TEST(ParseIdx, ReadsImages) {
  const std::string content = idx_images(3, 2, 4);
  const IdxArray array = parse_idx(content, "x", IdxKind::kImages);
  EXPECT_EQ(array.shape, (std::vector<int64_t>{3, 2, 4}));
  ASSERT_EQ(array.values().size(), 24U);
  EXPECT_EQ(array.values()[23], 23);
  EXPECT_EQ(array.source.bytes, content.size());
  EXPECT_EQ(array.source.sha256, sha256_hex(content));
}

TEST(ParseIdx, ReadsLabels) {
  const IdxArray array = parse_idx(idx_labels({7, 0, 9}), "x", IdxKind::kLabels);
  EXPECT_EQ(array.shape, (std::vector<int64_t>{3}));
  EXPECT_EQ(array.values()[2], 9);
}

TEST(ParseIdx, NamesALabelFileGivenAsImages) {
  EXPECT_THAT(parse_refusal(idx_labels({1, 2})),
              AllOf(HasSubstr("folder/x-ubyte is an IDX label file (magic 2049)"),
                    HasSubstr("must be an IDX image file (magic 2051)"), HasSubstr("Fix:")));
}

TEST(ParseIdx, NamesAnImageFileGivenAsLabels) {
  EXPECT_THAT(parse_refusal(idx_images(1, 2, 2), IdxKind::kLabels),
              HasSubstr("is an IDX image file (magic 2051), must be an IDX label file"));
}

TEST(ParseIdx, NamesGzipUnderAPlainName) {
  EXPECT_THAT(parse_refusal(gzipped(idx_images(1, 2, 2))),
              AllOf(HasSubstr("gzip"), HasSubstr("magic 2051"), HasSubstr(".gz")));
}

TEST(ParseIdx, NamesTheWrongByteOrder) {
  std::string content = idx_images(300, 2, 2);
  EXPECT_THAT(
      parse_refusal(std::string("\x03\x08\0\0", 4) + content.substr(4)),
      AllOf(HasSubstr("wrong byte order"), HasSubstr("little-endian"), HasSubstr("50855936")));
  for (const int field : {4, 8, 12}) {
    std::reverse(content.begin() + field, content.begin() + field + 4);
  }
  EXPECT_THAT(parse_refusal(content),
              AllOf(HasSubstr("wrong byte order"), HasSubstr("must be 300 x 2 x 2")));
}

TEST(ParseIdx, NamesTheWrongByteOrderOfALabelCount) {
  std::string content = idx_labels({1, 2, 3});
  std::reverse(content.begin() + 4, content.begin() + 8);
  EXPECT_THAT(parse_refusal(content, IdxKind::kLabels),
              AllOf(HasSubstr("wrong byte order"), HasSubstr("50331648, must be 3 ")));
}

TEST(ParseIdx, NamesOtherElementTypes) {
  EXPECT_THAT(parse_refusal(with_byte(idx_images(1, 2, 2), 2, 0x0d)),
              AllOf(HasSubstr("element type 0x0d"), HasSubstr("3 dimensions")));
  EXPECT_THAT(parse_refusal(std::string("PK\x03\x04 something", 14)), HasSubstr("not an IDX file"));
}

TEST(ParseIdx, RefusesTruncatedContentWithBothSizes) {
  const std::string content = idx_images(3, 2, 4);
  for (size_t size = 0; size < content.size(); ++size) {
    const std::string message = parse_refusal(content.substr(0, size));
    EXPECT_THAT(message, AllOf(HasSubstr("folder/x-ubyte"), HasSubstr(cat("has ", size))));
    EXPECT_THAT(message, HasSubstr(size < 16 ? "header" : "needs 40"));
  }
}

TEST(ParseIdx, RefusesSurplusBytes) {
  EXPECT_THAT(parse_refusal(idx_images(3, 2, 4) + "x"),
              AllOf(HasSubstr("too long: it has 41 bytes"), HasSubstr("needs 40")));
}

TEST(ParseIdx, RefusesEmptyDimensions) {
  EXPECT_THAT(parse_refusal(with_byte(idx_images(1, 2, 2), 7, 0)),
              AllOf(HasSubstr("holds 0 x 2 x 2 images"), HasSubstr(">= 1")));
}

TEST(ParseIdx, RefusesSizesThatOverflow) {
  std::string content = idx_images(1, 2, 2);
  for (size_t i = 4; i < 16; ++i) content[i] = '\xff';
  EXPECT_THAT(parse_refusal(content),
              AllOf(HasSubstr("4294967295 x 4294967295"), HasSubstr("64 bits")));
}

TEST(ParseIdx, SurvivesThousandsOfMutatedHeaders) {
  constexpr uint64_t kSeed = 4711;
  std::cout << "seed " << kSeed << "\n";
  std::mt19937_64 engine(kSeed);
  const std::string originals[] = {idx_images(5, 3, 3), idx_labels({1, 2, 3, 4, 5, 6, 7})};
  int num_read = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string content = originals[engine() % 2];
    const auto kind = engine() % 2 == 0 ? IdxKind::kImages : IdxKind::kLabels;
    for (uint64_t flips = engine() % 4; flips > 0; --flips) {
      content[engine() % std::min<size_t>(content.size(), 16)] = static_cast<char>(engine());
    }
    if (engine() % 4 == 0) content.resize(engine() % (content.size() + 8));
    try {
      const IdxArray array = parse_idx(content, "mutated", kind);
      int64_t elements = 1;
      for (const int64_t size : array.shape) elements *= size;
      ASSERT_EQ(static_cast<int64_t>(array.values().size()), elements);
      ++num_read;
    } catch (const DataError& error) {
      ASSERT_THAT(error.what(), HasSubstr("mutated"));
    }
  }
  EXPECT_GT(num_read, 1000);
}

TEST(ReadIdxFile, UnpacksGzip) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "images.gz");
  const std::string content = idx_images(300, 20, 30);
  write_bytes(path, gzipped(content));
  const IdxArray array = read_idx_file(path, IdxKind::kImages);
  EXPECT_EQ(array.content, content);
  EXPECT_EQ(array.source.path, path);
  EXPECT_EQ(array.source.sha256, sha256_hex(content));
}

TEST(ReadIdxFile, UnpacksGzipOfSeveralMembers) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "images.gz");
  const std::string content = idx_images(30, 20, 30);
  write_bytes(path, gzipped(content.substr(0, 5)) + gzipped(content.substr(5)));
  EXPECT_EQ(read_idx_file(path, IdxKind::kImages).content, content);
}

TEST(ReadIdxFile, RefusesPlainContentUnderAGzipName) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "images.gz");
  write_bytes(path, idx_images(1, 2, 2));
  EXPECT_THAT(
      thrown_message<DataError>([&] { read_idx_file(path, IdxKind::kImages); }),
      AllOf(HasSubstr(path), HasSubstr("is an IDX image file"), HasSubstr("must be a gzip file")));
}

TEST(ReadIdxFile, RefusesGzipThatUnpacksToMoreThanItsHeaderSays) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "images.gz");
  write_bytes(path, gzipped(idx_images(1, 2, 2) + std::string(50'000'000, '\0')));
  EXPECT_THAT(thrown_message<DataError>([&] { read_idx_file(path, IdxKind::kImages); }),
              AllOf(HasSubstr("too long: it has 21 bytes"), HasSubstr("needs 20")));
}

TEST(ReadIdxFile, SaysWhichFileIsMissing) {
  EXPECT_THAT(thrown_message<DataError>([] { read_idx_file("/none/x", IdxKind::kImages); }),
              AllOf(HasSubstr("/none/x"), HasSubstr("--data_dir")));
}

TEST(Gunzip, RefusesEveryTruncation) {
  const std::string packed = gzipped(idx_images(3, 2, 4));
  for (size_t size = 2; size < packed.size(); ++size) {
    EXPECT_THAT(thrown_message<DataError>([&] { gunzip(packed.substr(0, size), "p/x.gz", 1000); }),
                AllOf(HasSubstr("p/x.gz"), HasSubstr("ends early"), HasSubstr("Fix:")))
        << size;
  }
}

TEST(Gunzip, NoticesEveryFlippedByteOfDataAndChecksum) {
  const std::string content = idx_images(3, 2, 4);
  const std::string packed = gzipped(content);
  for (size_t place = 10; place < packed.size(); ++place) {  // behind the 10 bytes of the header
    std::string broken = packed;
    broken[place] = static_cast<char>(broken[place] ^ 0x55);
    EXPECT_THROW(gunzip(broken, "x.gz", 1000), DataError) << place;
  }
}

TEST(Gunzip, RefusesBytesBehindTheEnd) {
  EXPECT_THAT(thrown_message<DataError>([] { gunzip(gzipped("abc") + "xyz", "x.gz", 1000); }),
              HasSubstr("not gzip"));
}

TEST(Gunzip, StopsAtItsLimit) {
  EXPECT_EQ(gunzip(gzipped("abcdef"), "x.gz", 4), "abcd");
  EXPECT_EQ(gunzip(gzipped("abcdef"), "x.gz", 6), "abcdef");
  EXPECT_EQ(gunzip(gzipped(""), "x.gz", 6), "");
}

}  // namespace
}  // namespace assay::data
