#include "harness/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::harness {
namespace {

using ::testing::HasSubstr;

// Two epochs of 6 samples in steps of 2, then one step of a third.
std::vector<IdsLine> clean_ledger() {
  return {{1, 0, {3, 1}}, {2, 0, {0, 5}}, {3, 0, {2, 4}}, {4, 1, {5, 2}},
          {5, 1, {4, 0}}, {6, 1, {1, 3}}, {7, 2, {0, 4}}};
}

LedgerRules rules() {
  LedgerRules made;
  made.last_step = 7;
  made.train_samples = 6;
  return made;
}

std::string first_problem(const std::vector<IdsLine>& lines, const LedgerRules& made = rules()) {
  const Ledger ledger = check_ledger(lines, made);
  return ledger.findings.empty() ? "" : ledger.findings.front().problem;
}

TEST(CheckLedger, FindsNothingInACleanRun) {
  const Ledger ledger = check_ledger(clean_ledger(), rules());
  EXPECT_TRUE(ledger.findings.empty());
  EXPECT_EQ(ledger.steps, 7);
  EXPECT_EQ(ledger.samples, 14);
  EXPECT_EQ(ledger.whole_epochs, 2);
}

TEST(CheckLedger, NamesASkippedSample) {
  std::vector<IdsLine> lines = clean_ledger();
  lines[1].ids = {0};  // 5 is never used in epoch 0
  EXPECT_THAT(first_problem(lines), HasSubstr("the first one missing is 5"));
}

TEST(CheckLedger, NamesARepeatedSampleWithBothSteps) {
  std::vector<IdsLine> lines = clean_ledger();
  lines[2].ids = {2, 3};
  EXPECT_THAT(first_problem(lines),
              HasSubstr("sample 3 is used twice in epoch 0: at steps 1 and 3"));
}

TEST(CheckLedger, NamesAMissingAndADoubleStep) {
  std::vector<IdsLine> lines = clean_ledger();
  lines.erase(lines.begin() + 3);
  EXPECT_THAT(first_problem(lines), HasSubstr("step 5 follows where step 4 was expected"));
  lines = clean_ledger();
  lines.insert(lines.begin() + 1, lines[0]);
  EXPECT_THAT(first_problem(lines), HasSubstr("step 1 follows where step 2 was expected"));
}

TEST(CheckLedger, NamesARunThatEndsEarly) {
  std::vector<IdsLine> lines = clean_ledger();
  lines.pop_back();
  EXPECT_THAT(first_problem(lines), HasSubstr("ends at step 6, expected 7"));
}

TEST(CheckLedger, NamesAnEpochThatStartsAgain) {
  std::vector<IdsLine> lines = clean_ledger();
  lines[6].epoch = 0;
  EXPECT_THAT(first_problem(lines), HasSubstr("epoch 0 follows epoch 1"));
}

TEST(CheckLedger, NamesASampleOutsideTheSet) {
  std::vector<IdsLine> lines = clean_ledger();
  lines[0].ids = {6, 1};
  EXPECT_THAT(first_problem(lines), HasSubstr("sample 6 lies outside 0..5"));
}

TEST(CheckLedger, WithoutAKnownSizeStillFindsAHole) {
  std::vector<IdsLine> lines = clean_ledger();
  lines[1].ids = {5};  // 0 missing
  LedgerRules unknown = rules();
  unknown.train_samples = 0;
  EXPECT_THAT(first_problem(lines, unknown), HasSubstr("the first one missing is 0"));
}

TEST(FirstLedgerDifference, NamesStepPlaceAndBothSamples) {
  std::vector<IdsLine> other = clean_ledger();
  EXPECT_EQ(first_ledger_difference(clean_ledger(), other), "");
  other[3].ids = {5, 0};
  EXPECT_EQ(first_ledger_difference(clean_ledger(), other), "step 4 place 1: sample 2 and 0");
}

}  // namespace
}  // namespace assay::harness
