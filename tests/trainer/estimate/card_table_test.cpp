#include "trainer/estimate/card_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::estimate {
namespace {

constexpr Card kSimple = {"simple",       0, /*half_tflops=*/100, /*single_tflops=*/10,
                          /*tb_per_s=*/1, 0};

TEST(FindCard, KnowsTheDriversNames) {
  EXPECT_EQ(find_card("NVIDIA H200")->name, "H200");
  EXPECT_EQ(find_card("NVIDIA H100 80GB HBM3")->name, "H100");
  EXPECT_EQ(find_card("NVIDIA H100 PCIe")->name, "H100 PCIe");
  EXPECT_EQ(find_card("NVIDIA A100-SXM4-80GB")->name, "A100-SXM4-80GB");
  EXPECT_EQ(find_card("NVIDIA GeForce RTX 4090")->name, "RTX 4090");
  EXPECT_EQ(find_card("NVIDIA L40S")->name, "L40S");
  EXPECT_EQ(find_card("NVIDIA L4")->name, "L4");
}

TEST(FindCard, TakesWhatAUserWrites) {
  EXPECT_EQ(find_card("rtx 4090")->name, "RTX 4090");
  EXPECT_EQ(find_card("4090")->name, "RTX 4090");
  EXPECT_EQ(find_card("a100 sxm4 40gb")->name, "A100-SXM4-40GB");
}

TEST(FindCard, FindsNothingForOtherAndAmbiguousNames) {
  EXPECT_FALSE(find_card("RTX 4070"));
  EXPECT_FALSE(find_card("a100"));
  EXPECT_FALSE(find_card(""));
}

TEST(Cards, HavePlausibleNumbers) {
  for (const Card& card : cards()) {
    SCOPED_TRACE(card.name);
    EXPECT_GT(card.half_tflops, card.single_tflops);
    EXPECT_GT(card.tb_per_s, 0.2);
    EXPECT_LT(card.tb_per_s, 10);
    EXPECT_GE(card.memory_mib, 12 * 1024);
    EXPECT_GT(card.link_gb_per_s, 0);
    EXPECT_EQ(find_card(card.name)->name, card.name);
  }
}

TEST(StepBound, TakesTheLongerOfArithmeticAndBytes) {
  StepTrace trace;
  trace.work = {{"a", Stage::kForward, Arithmetic::kHalf, 1e11, 1e6},   // 1 ms of arithmetic
                {"b", Stage::kForward, Arithmetic::kHalf, 0, 2e9},      // 2 ms of bytes
                {"c", Stage::kBackward, Arithmetic::kSingle, 3e10, 0},  // 3 ms
                {"d", Stage::kUpdate, Arithmetic::kSingle, 0, 4e9}};    // 4 ms
  const StepBound bound = step_bound(trace, kSimple);
  EXPECT_DOUBLE_EQ(bound.forward_ms, 3);
  EXPECT_DOUBLE_EQ(bound.backward_ms, 3);
  EXPECT_DOUBLE_EQ(bound.update_ms, 4);
}

TEST(ReadyFractions, AreSharesOfTheBackwardPass) {
  StepTrace trace;
  trace.work = {{"f", Stage::kForward, Arithmetic::kSingle, 0, 9e9},
                {"b", Stage::kBackward, Arithmetic::kSingle, 0, 1e9},
                {"b", Stage::kBackward, Arithmetic::kSingle, 0, 3e9},
                {"u", Stage::kUpdate, Arithmetic::kSingle, 0, 9e9}};
  trace.ready = {{"late", 4, 1, 2}, {"last", 4, 1, 3}};
  EXPECT_THAT(ready_fractions(trace, kSimple), testing::ElementsAre(0.25, 1.0));
}

}  // namespace
}  // namespace assay::estimate
