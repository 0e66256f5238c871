#include "data/tar_index.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "tests/data/tar_files.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TarSource source_of(const std::string& content) {
  return {"x.tar", content.size(), [&content](uint64_t offset, std::span<unsigned char> into) {
            ASSERT_LE(offset + into.size(), content.size());  // never asked beyond the end
            std::memcpy(into.data(), content.data() + offset, into.size());
          }};
}

std::vector<TarMember> members(const std::string& content) {
  return tar_members(source_of(content));
}

std::string refusal(const std::string& content) {
  return thrown_message<DataError>([&] { members(content); });
}

std::string content_of(const std::string& archive, const TarMember& member) {
  return archive.substr(member.offset, member.bytes);
}

TEST(TarIndex, FindsMembersAndTheirPlaces) {
  const std::string archive = tar_member("a/", "", '5') + tar_member("./a/x.jpg", "pixels") +
                              tar_member("empty", "") + tar_member("b", std::string(513, 'b')) +
                              tar_end();
  const std::vector<TarMember> found = members(archive);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name, "a/x.jpg");
  EXPECT_EQ(content_of(archive, found[0]), "pixels");
  EXPECT_EQ(found[1].bytes, 0U);
  EXPECT_EQ(content_of(archive, found[2]), std::string(513, 'b'));
}

TEST(TarIndex, JoinsTheUstarPrefix) {
  std::string header = tar_header("name.jpg", 0);
  header.replace(345, 9, "some/path");
  sign_header(header);
  EXPECT_EQ(members(header + tar_end()).at(0).name, "some/path/name.jpg");
}

TEST(TarIndex, TakesLongNamesOfGnuAndPax) {
  const std::string name = std::string(150, 'd') + "/" + std::string(150, 'n') + ".jpg";
  const std::string gnu = tar_member("././@LongLink", name + std::string(1, '\0'), 'L') +
                          tar_member(name.substr(0, 100), "gnu");
  const std::string pax =
      tar_member("PaxHeaders/x", pax_record("mtime", "1.5") + pax_record("path", name + "2"), 'x') +
      tar_member(name.substr(0, 100), "pax");
  const std::string archive = gnu + pax + tar_member("short", "") + tar_end();
  const std::vector<TarMember> found = members(archive);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name, name);
  EXPECT_EQ(content_of(archive, found[1]), "pax");
  EXPECT_EQ(found[1].name, name + "2");
  EXPECT_EQ(found[2].name, "short");  // the long name held for one member only
}

TEST(TarIndex, TakesSizesOfPaxAndInBinary) {
  const std::string pax = tar_member("p", pax_record("size", "5"), 'x') + tar_header("a", 0) +
                          padded("12345") + tar_end();
  EXPECT_EQ(members(pax).at(0).bytes, 5U);
  std::string binary = tar_header("a", 0);
  binary.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x05", 12));
  sign_header(binary);
  EXPECT_EQ(members(binary + padded("12345") + tar_end()).at(0).bytes, 5U);
}

TEST(TarIndex, IgnoresGlobalPaxHeaders) {
  const std::string archive =
      tar_member("g", pax_record("comment", "x"), 'g') + tar_member("a", "1") + tar_end();
  EXPECT_EQ(members(archive).size(), 1U);
}

TEST(TarIndex, RefusesArchivesThatWereCutOffAnywhere) {
  const std::string archive =
      tar_member("a", std::string(700, 'a')) + tar_member("b", "b") + std::string(512, '\0');
  EXPECT_EQ(members(archive).size(), 2U);
  for (size_t length = 0; length < archive.size(); length += 64) {
    EXPECT_THAT(refusal(archive.substr(0, length)), HasSubstr("cut off")) << length;
  }
}

TEST(TarIndex, RefusesWhatIsNoArchive) {
  EXPECT_THAT(refusal(std::string(2048, 'x')), HasSubstr("no tar header"));
  EXPECT_THAT(refusal(padded(gzipped(std::string(1000, 'x')))), HasSubstr("compressed"));
  std::string damaged = tar_member("a", "1") + tar_member("b", "2") + tar_end();
  damaged[1024 + 3] = 'x';
  EXPECT_THAT(refusal(damaged), AllOf(HasSubstr("byte 1024"), HasSubstr("checksum")));
}

TEST(TarIndex, RefusesNamesThatLeadOutOfTheArchive) {
  for (const char* name : {"../x.jpg", "a/../../x.jpg", "..", "./../x"}) {
    EXPECT_THAT(refusal(tar_member(name, "1") + tar_end()), HasSubstr("leads out")) << name;
  }
  EXPECT_THAT(refusal(tar_member("/etc/passwd", "1") + tar_end()), HasSubstr("is absolute"));
  EXPECT_THAT(refusal(tar_member("a\nb.jpg", "1") + tar_end()), HasSubstr("control character"));
  EXPECT_THAT(refusal(tar_member("../d", "", '5') + tar_end()), HasSubstr("leads out"));
  const std::string with_nul = pax_record("path", std::string("a\0b", 3));
  EXPECT_THAT(refusal(tar_member("p", with_nul, 'x') + tar_member("a", "1") + tar_end()),
              HasSubstr("control character"));
  EXPECT_THAT(refusal(tar_member("", "1") + tar_end()), HasSubstr("is empty"));
}

TEST(TarIndex, RefusesLinksAndDevices) {
  EXPECT_THAT(refusal(tar_member("a", "", '2') + tar_end()), HasSubstr("symbolic link"));
  EXPECT_THAT(refusal(tar_member("a", "", '1') + tar_end()), HasSubstr("hard link"));
  for (const char type : {'3', '4', '6', 'S', 'V'}) {
    EXPECT_THAT(refusal(tar_member("a", "", type) + tar_end()), HasSubstr("neither a file"));
  }
  EXPECT_THAT(refusal(tar_member("p", pax_record("GNU.sparse.major", "1"), 'x') + tar_end()),
              HasSubstr("sparse"));
}

TEST(TarIndex, RefusesSizesThatCannotBe) {
  std::string negative = tar_header("a", 0);
  negative.replace(124, 12, std::string(12, '\xff'));
  sign_header(negative);
  EXPECT_THAT(refusal(negative + tar_end()), HasSubstr("size is no number"));
  std::string huge = tar_header("a", 0);
  huge.replace(124, 12, std::string("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12));
  sign_header(huge);
  EXPECT_THAT(refusal(huge + tar_end()), HasSubstr("cut off"));
  EXPECT_THAT(refusal(tar_header("l", 2 << 20, 'L') + std::string(3 << 20, 'x')),
              HasSubstr("extended header"));
  EXPECT_THAT(refusal(tar_member("p", "99 path=x\n", 'x') + tar_end()), HasSubstr("malformed"));
  EXPECT_THAT(refusal(tar_member("p", pax_record("size", "-1"), 'x') + tar_end()),
              HasSubstr("\"-1\""));
}

}  // namespace
}  // namespace assay::data
