#include "platform/roots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/platform/fixture_tree.h"

namespace assay::platform {
namespace {

using testing::ElementsAre;

TEST(KernelList, CountsSinglesAndRanges) {
  EXPECT_EQ(count_kernel_list("0"), 1);
  EXPECT_EQ(count_kernel_list("0-3,8,10-11\n"), 7);
}

TEST(KernelList, CountsMalformedTextAsZero) {
  for (const char* text : {"", "3-1", "a-b", "1,,2", "-1", "1-", "0x3"}) {
    EXPECT_EQ(count_kernel_list(text), 0) << text;
  }
}

TEST(ReadInteger, TakesDecimalAndHexadecimal) {
  FixtureTree tree;
  tree.add("/decimal", "-12\n").add("/hex", "0x10de\n").add("/text", "0xzz\n").add("/empty", "");
  EXPECT_EQ(read_integer(tree.roots(), "/decimal"), -12);
  EXPECT_EQ(read_integer(tree.roots(), "/hex"), 0x10de);
  EXPECT_EQ(read_integer(tree.roots(), "/text"), std::nullopt);
  EXPECT_EQ(read_integer(tree.roots(), "/empty"), std::nullopt);
  EXPECT_EQ(read_integer(tree.roots(), "/absent"), std::nullopt);
}

TEST(KeyedValue, IsTheFirstOfItsKey) {
  EXPECT_EQ(keyed_value("model\t: 17\nmodel name\t: A: B\nmodel name\t: C\n", "model name"),
            "A: B");
  EXPECT_EQ(keyed_value("model name : x", "model"), std::nullopt);
}

TEST(WordsOf, SkipsAnyBlanks) {
  EXPECT_THAT(words_of("  a\t b  c "), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(words_of(" \t").empty());
}

TEST(ListNames, SortsAndTakesAbsentFolderAsEmpty) {
  FixtureTree tree;
  tree.add("/dev/b", "").add("/dev/a", "");
  EXPECT_THAT(list_names(tree.roots(), "/dev"), ElementsAre("a", "b"));
  EXPECT_TRUE(list_names(tree.roots(), "/absent").empty());
}

}  // namespace
}  // namespace assay::platform
