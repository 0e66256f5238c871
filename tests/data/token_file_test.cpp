#include "data/token_file.h"

#include <cstdlib>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "tests/data/thrown_message.h"
#include "tests/data/token_files.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TokenFiles : public ::testing::Test {
 protected:
  std::string written(const std::string& name, const std::string& content) const {
    const std::string path = join_path(folder_.path(), name);
    write_bytes(path, content);
    return path;
  }
  // The message with which a file is refused, at the latest when its content is checked.
  std::string refusal(const std::string& content, int64_t vocabulary,
                      std::optional<int64_t> bits = {}) const {
    const std::string path = written("train.bin", content);
    return thrown_message<DataError>([&] {
      const TokenFile file(path, bits);
      check_tokens(file, file.facts(), vocabulary);
    });
  }

  TemporaryFolder folder_;
};

TEST_F(TokenFiles, ReadNanoGptsBareNumbers) {
  const TokenFile file(written("a.bin", token_bytes<uint16_t>({5, 65535, 0, 7})), {});
  EXPECT_FALSE(file.layout().has_header);
  ASSERT_EQ(file.size(), 4);
  std::vector<int64_t> inputs(3);
  std::vector<int64_t> targets(3);
  file.read_window(0, inputs, targets);
  EXPECT_EQ(inputs, (std::vector<int64_t>{5, 65535, 0}));
  EXPECT_EQ(targets, (std::vector<int64_t>{65535, 0, 7}));
}

TEST_F(TokenFiles, ReadLlmCsHeaderOfEitherWidth) {
  const TokenFile narrow(
      written("a.bin", llmc_header(20240520, 1, 3) + token_bytes<uint16_t>({1, 2, 50256})), {});
  EXPECT_TRUE(narrow.layout().has_header);
  EXPECT_EQ(narrow.size(), 3);
  EXPECT_EQ(narrow.at(2), 50256);
  const TokenFile wide(
      written("b.bin", llmc_header(20240801, 7, 2) + token_bytes<uint32_t>({1, 128255})), {});
  EXPECT_EQ(wide.layout().token_bytes, 4);
  EXPECT_EQ(wide.at(1), 128255);
}

TEST_F(TokenFiles, ReadBareNumbersOfThirtyTwoBitsWhenTold) {
  const TokenFile file(written("a.bin", token_bytes<uint32_t>({65534, 65540})), 32);
  ASSERT_EQ(file.size(), 2);
  EXPECT_EQ(file.at(1), 65540);
}

TEST_F(TokenFiles, RefuseWindowsBeyondTheEnd) {
  const TokenFile file(written("a.bin", token_bytes<uint16_t>({1, 2, 3})), {});
  std::vector<int64_t> inputs(3);
  std::vector<int64_t> targets(3);
  EXPECT_THROW(file.read_window(0, inputs, targets), InternalError);
}

TEST_F(TokenFiles, RefuseOddByteCountsNamingBothSizes) {
  EXPECT_THAT(refusal(token_bytes<uint16_t>({1, 2}) + "x", 10),
              AllOf(HasSubstr("train.bin has 5 bytes"), HasSubstr("multiple of 2 (4 or 6)")));
  EXPECT_THAT(refusal(token_bytes<uint16_t>({1, 2, 3}), 10, 32),
              AllOf(HasSubstr("has 6 bytes"), HasSubstr("multiple of 4 (4 or 8"),
                    HasSubstr("data.token_bits=16")));
  EXPECT_THAT(refusal("", 10), HasSubstr("is empty"));
}

TEST_F(TokenFiles, RefuseHeadersThatDoNotFitTheSize) {
  EXPECT_THAT(refusal(llmc_header(20240520, 1, 4) + token_bytes<uint16_t>({1, 2, 3}), 10),
              AllOf(HasSubstr("6 bytes of tokens"), HasSubstr("counts 4 of 2 bytes, which are 8")));
  EXPECT_THAT(refusal(llmc_header(20240520, 1, 3) + token_bytes<uint32_t>({1, 2, 3}), 10),
              HasSubstr("written with 4 bytes each"));
  EXPECT_THAT(refusal(llmc_header(20240801, 7, 4) + token_bytes<uint16_t>({1, 2, 3, 4}), 10),
              HasSubstr("written with 2 bytes each"));
  EXPECT_THAT(refusal(llmc_header(20240520, 1, -1), 10), HasSubstr("counts -1"));
  EXPECT_THAT(refusal(llmc_header(20240520, 2, 0), 10),
              AllOf(HasSubstr("version 2"), HasSubstr("must be 1")));
  EXPECT_THAT(refusal(llmc_header(20240520, 1, 0).substr(0, 512), 10), HasSubstr("cut off"));
}

TEST_F(TokenFiles, RefuseAWidthThatTheHeaderDenies) {
  EXPECT_THAT(refusal(llmc_header(20240520, 1, 1) + token_bytes<uint16_t>({1}), 10, 32),
              AllOf(HasSubstr("data.token_bits is 32"), HasSubstr("have 16")));
}

TEST_F(TokenFiles, SayWhatOtherFilesAre) {
  EXPECT_THAT(refusal("\x93NUMPY\x01", 10), HasSubstr("numpy"));
  EXPECT_THAT(refusal(gzipped("abc"), 10), HasSubstr("gzip"));
  EXPECT_THAT(refusal("PK\x03\x04..", 10), HasSubstr("zip"));
  EXPECT_THAT(refusal(std::string(100, 'a'), 50257), HasSubstr("assay data tokenize"));
  EXPECT_THAT(refusal(llmc_header(20240326, 3, 0), 10), HasSubstr("model weights"));
  EXPECT_THAT(refusal(llmc_header(20240328, 2, 0), 10), HasSubstr("tokenizer"));
  EXPECT_THAT(refusal(llmc_header(static_cast<int32_t>(__builtin_bswap32(20240520U)), 1, 0), 10),
              HasSubstr("wrong byte order"));
}

TEST_F(TokenFiles, NoticeThirtyTwoBitsReadAsSixteen) {
  // Below 65,536 every high half is zero; above, high halves stay small.
  EXPECT_THAT(refusal(token_bytes<uint32_t>(counting(100, 3)), 50257),
              AllOf(HasSubstr("200 tokens of 16 bits"), HasSubstr("100 of 32 bits"),
                    HasSubstr("data.token_bits=32")));
  EXPECT_THAT(refusal(token_bytes<uint32_t>(counting(100, 65500)), 100000),
              HasSubstr("of 32 bits"));
}

TEST_F(TokenFiles, NoticeSixteenBitsReadAsThirtyTwo) {
  EXPECT_THAT(refusal(token_bytes<uint16_t>(counting(100, 300)), 50257, 32),
              AllOf(HasSubstr("must be in [0, 50256]"), HasSubstr("read as 16-bit tokens"),
                    HasSubstr("data.token_bits=16")));
  // Also where the vocabulary is not known.
  EXPECT_THAT(refusal(token_bytes<uint16_t>(counting(100, 300)), 0, 32),
              HasSubstr("must be in [0, 16777215]"));
}

TEST_F(TokenFiles, AcceptSmallIdsOfSixteenBits) {
  const TokenFile file(written("a.bin", token_bytes<uint16_t>(counting(200))), {});
  check_tokens(file, file.facts(), 256);
}

TEST_F(TokenFiles, RefuseIdsOutsideTheVocabularyNamingPlaceAndRange) {
  std::vector<int64_t> ids = counting(3000000);
  for (int64_t& id : ids) id %= 50257;
  ids[2222221] = 50257;
  EXPECT_THAT(
      refusal(token_bytes<uint16_t>(ids), 50257),
      AllOf(HasSubstr("train.bin: token 2222221 is 50257"), HasSubstr("must be in [0, 50256]")));
  EXPECT_THAT(refusal(token_bytes<uint32_t>({1, 70000}), 70000, 32),
              AllOf(HasSubstr("token 1 is 70000"), HasSubstr("[0, 69999]")));
}

TEST_F(TokenFiles, RefuseSixteenBitsForALargerVocabulary) {
  EXPECT_THAT(refusal(token_bytes<uint16_t>(counting(7, 65529)), 70000),
              AllOf(HasSubstr("vocabulary is 70000"), HasSubstr("wrapped")));
}

TEST_F(TokenFiles, HashTheWholeFile) {
  const std::string content = llmc_header(20240520, 1, 2) + token_bytes<uint16_t>({9, 4});
  const TokenFile file(written("a.bin", content), {});
  const TokenFacts facts = file.facts();
  EXPECT_EQ(facts.sha256, sha256_hex(content));
  EXPECT_EQ(facts.largest, 9);
  EXPECT_EQ(facts.largest_at, 0);
}

TEST_F(TokenFiles, RefuseMissingFiles) {
  EXPECT_THAT(
      thrown_message<DataError>([&] { TokenFile(join_path(folder_.path(), "no.bin"), {}); }),
      AllOf(HasSubstr("no.bin"), HasSubstr("--data_dir")));
}

TEST_F(TokenFiles, ReachPlacesBeyondFourGigabytes) {
  const std::string path = join_path(folder_.path(), "large.bin");
  constexpr off_t kTokens = 2'500'000'000;
  const int descriptor = ::open(path.c_str(), O_CREAT | O_WRONLY, 0644);
  ASSERT_GE(descriptor, 0);
  const std::string end = token_bytes<uint16_t>({11, 22, 33});
  const bool is_written = ::pwrite(descriptor, end.data(), end.size(), 2 * (kTokens - 3)) ==
                          static_cast<ssize_t>(end.size());
  ::close(descriptor);
  if (!is_written) GTEST_SKIP() << "no sparse file of 5 GB can be made here";
  const TokenFile file(path, {});
  ASSERT_EQ(file.size(), kTokens);
  std::vector<int64_t> inputs(3);
  std::vector<int64_t> targets(3);
  file.read_window(kTokens - 4, inputs, targets);
  EXPECT_EQ(inputs, (std::vector<int64_t>{0, 11, 22}));
  EXPECT_EQ(targets, (std::vector<int64_t>{11, 22, 33}));
}

TEST(TokenHeader, RefusesCountsThatItCannotHold) {
  EXPECT_EQ(token_header(7, "x").size(), 1024U);
  EXPECT_THAT(thrown_message<DataError>([] { token_header(int64_t{1} << 31, "x.bin"); }),
              AllOf(HasSubstr("x.bin"), HasSubstr("2147483648"), HasSubstr("--format raw")));
}

class FileFacts : public TokenFiles {
 protected:
  FileFacts() {
    if (const char* value = std::getenv("ASSAY_CACHE")) before_ = value;
    ::setenv("ASSAY_CACHE", join_path(folder_.path(), "cache").c_str(), 1);
  }
  ~FileFacts() override {
    if (before_) {
      ::setenv("ASSAY_CACHE", before_->c_str(), 1);
    } else {
      ::unsetenv("ASSAY_CACHE");
    }
  }

  static constexpr KeepRules kAlways{.smallest_bytes = 0, .smallest_age_ns = 0};
  std::optional<std::string> before_;
};

TEST_F(FileFacts, ComeBackForTheSameFileOnly) {
  const std::string path = written("a.bin", "abc");
  const FileStamp stamp = stamp_of(path);
  EXPECT_FALSE(cached_facts(stamp, "k").has_value());
  ASSERT_TRUE(keep_facts(stamp, "k", {.text = "digest", .numbers = {1, -2}}, kAlways));
  const auto found = cached_facts(stamp, "k");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->text, "digest");
  EXPECT_EQ(found->numbers, (std::vector<int64_t>{1, -2}));
  EXPECT_FALSE(cached_facts(stamp, "other").has_value());
  FileStamp changed = stamp;
  ++changed.changed_ns;
  EXPECT_FALSE(cached_facts(changed, "k").has_value());
}

TEST_F(FileFacts, AreDroppedWhenDamaged) {
  const FileStamp stamp = stamp_of(written("a.bin", "abc"));
  ASSERT_TRUE(keep_facts(stamp, "k", {.text = "digest", .numbers = {12}}, kAlways));
  const std::string folder = join_path(folder_.path(), "cache/file-facts");
  const std::string entry = join_path(folder, list_directory(folder).at(0));
  std::string content = read_file(entry);
  const size_t place = content.find("digest");
  content[place] = 'D';
  std::ofstream(entry, std::ios::binary) << content;
  EXPECT_FALSE(cached_facts(stamp, "k").has_value());
}

TEST_F(FileFacts, OfSmallOrNewFilesAreNotKept) {
  const FileStamp stamp = stamp_of(written("a.bin", "abc"));
  EXPECT_FALSE(keep_facts(stamp, "k", {.text = "x", .numbers = {}}));
  EXPECT_FALSE(keep_facts(stamp, "k", {.text = "x", .numbers = {}}, {.smallest_bytes = 0}));
  EXPECT_FALSE(path_exists(join_path(folder_.path(), "cache")));
}

TEST_F(FileFacts, NeedNoCacheThatCanBeWritten) {
  const FileStamp stamp = stamp_of(written("a.bin", "abc"));
  write_bytes(join_path(folder_.path(), "cache"), "a file in the folder's place");
  EXPECT_FALSE(keep_facts(stamp, "k", {.text = "x", .numbers = {}}, kAlways));
}

}  // namespace
}  // namespace assay::data
