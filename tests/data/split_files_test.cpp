#include "data/split_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "tests/data/idx_files.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SplitFilesOf : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return join_path(folder_.path(), name); }
  void touch(const std::vector<std::string>& names) const {
    for (const std::string& name : names) write_bytes(at(name), "x");
  }
  SplitFiles found(const std::string& directory) const {
    return find_split_files(directory, ".tar", "tar_shards");
  }
  std::string refusal(const std::string& directory) const {
    return thrown_message<DataError>([&] { found(directory); });
  }

  TemporaryFolder folder_;
};

TEST_F(SplitFilesOf, AFolderAreToldApartByTheWordsOfTheirNames) {
  touch({"b-train.tar", "a.tar", "x-val-0.tar", "x_test.tar", "evaluation.tar", "note.txt",
         ".hidden.tar"});
  const SplitFiles files = found(folder_.path());
  EXPECT_THAT(files.train, ElementsAre(at("a.tar"), at("b-train.tar"), at("evaluation.tar")));
  EXPECT_THAT(files.eval, ElementsAre(at("x-val-0.tar"), at("x_test.tar")));
}

TEST_F(SplitFilesOf, TrainAndValFoldersAreTaken) {
  touch({"train/b.tar", "train/a.tar", "val/c.tar", "other.tar"});
  const SplitFiles files = found(folder_.path());
  EXPECT_THAT(files.train, ElementsAre(at("train/a.tar"), at("train/b.tar")));
  EXPECT_THAT(files.eval, ElementsAre(at("val/c.tar")));
}

TEST_F(SplitFilesOf, APatternCountUpWithItsZeros) {
  touch({"t-train-008.tar", "t-train-009.tar", "t-train-010.tar", "t-val-008.tar"});
  const SplitFiles files = found(at("t-train-{008..010}.tar"));
  EXPECT_THAT(files.train,
              ElementsAre(at("t-train-008.tar"), at("t-train-009.tar"), at("t-train-010.tar")));
  EXPECT_THAT(files.eval, ElementsAre(at("t-val-008.tar")));
}

TEST_F(SplitFilesOf, SeveralRangesMultiply) {
  touch({"0-5.tar", "0-6.tar", "1-5.tar", "1-6.tar"});
  EXPECT_THAT(found(at("{0..1}-{5..6}.tar")).train,
              ElementsAre(at("0-5.tar"), at("0-6.tar"), at("1-5.tar"), at("1-6.tar")));
}

TEST_F(SplitFilesOf, WildcardsMatchNamesOnly) {
  touch({"a1.tar", "a2.tar", "b1.tar"});
  EXPECT_THAT(found(at("a?.tar")).train, ElementsAre(at("a1.tar"), at("a2.tar")));
  EXPECT_THAT(found(at("*1.tar")).train, ElementsAre(at("a1.tar"), at("b1.tar")));
  EXPECT_THAT(refusal(join_path(folder_.path() + "*", "a.tar")), HasSubstr("in its folder"));
}

TEST_F(SplitFilesOf, ASingleFileIsTrainedOn) {
  touch({"only.tar"});
  const SplitFiles files = found(at("only.tar"));
  EXPECT_THAT(files.train, ElementsAre(at("only.tar")));
  EXPECT_THAT(files.eval, IsEmpty());
}

TEST_F(SplitFilesOf, MissingNumbersAreCountedAndNamed) {
  touch({"s-0.tar", "s-3.tar"});
  EXPECT_THAT(refusal(at("s-{0..3}.tar")),
              AllOf(HasSubstr("2 of the 4 files"), HasSubstr("s-1.tar")));
}

TEST_F(SplitFilesOf, NothingToTrainOnIsRefused) {
  touch({"x-val.tar"});
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("1 to hold out"));
  EXPECT_THAT(refusal(at("none-*.tar")), HasSubstr("no file matches"));
  EXPECT_THAT(refusal(at("none.tar")), HasSubstr("does not exist"));
  touch({"train/readme"});
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("has no file *.tar"));
  EXPECT_THROW(found(""), ConfigError);
}

TEST_F(SplitFilesOf, HugeOrFallingRangesAreRefused) {
  EXPECT_THAT(refusal(at("{5..2}.tar")), HasSubstr("from 5 to 2"));
  EXPECT_THAT(refusal(at("{0..99999999999}.tar")), HasSubstr("at most"));
  EXPECT_THAT(refusal(at("{0..9999}-{0..9999}.tar")), HasSubstr("more than"));
}

TEST_F(SplitFilesOf, BracesThatAreNoRangeArePartOfTheName) {
  touch({"a{b}.tar"});
  EXPECT_THAT(found(at("a{b}.tar")).train, ElementsAre(at("a{b}.tar")));
  EXPECT_FALSE(is_pattern("a{b..c}.tar"));
  EXPECT_TRUE(is_pattern("a{1..2}.tar"));
}

}  // namespace
}  // namespace assay::data
