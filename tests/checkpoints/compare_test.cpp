#include "checkpoints/compare.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Two checkpoints of step 10; the right one is changed before it is saved.
template <class Change>
Comparison compare_after(const Change& change) {
  const TemporaryFolder left;
  const TemporaryFolder right;
  commit_sample(left.path(), 10);
  SampleState state(10);
  change(state);
  const CommitResult result = commit_checkpoint(request_for(right.path(), state));
  return compare_runs(join_path(left.path(), "checkpoint-10"), result.path);
}

TEST(CompareCheckpoints, EqualStatesAreBitEqual) {
  const Comparison comparison = compare_after([](SampleState& s) {
    std::swap(s.parts.model[0], s.parts.model[1]);
    s.parts.trainer.run_id = "run-b";
  });
  EXPECT_TRUE(comparison.is_bit_equal());
  EXPECT_EQ(comparison.compared_checkpoints, 1);
  EXPECT_EQ(comparison.compared_tensors, 7);
}

TEST(CompareCheckpoints, NamesTheFirstElementBothValuesAndTheNorm) {
  const Comparison comparison = compare_after(
      [](SampleState& s) { s.set_float(s.parts.model, "conv1.weight", 14, 10015.0F); });
  ASSERT_EQ(comparison.differences.size(), 1U);
  const Difference& difference = comparison.differences[0];
  EXPECT_EQ(difference.where, "checkpoint-10 model.safetensors");
  EXPECT_EQ(difference.field, "conv1.weight[1, 0, 1, 2]");
  EXPECT_EQ(difference.left, "10014");
  EXPECT_EQ(difference.right, "10015");
  EXPECT_THAT(difference.likely_reason, HasSubstr("weights"));
  double squares = 0;
  for (int index = 0; index < 18; ++index)
    squares += std::pow(index == 14 ? 10015.0 : 10000.0 + index, 2);
  // Both sums have 18 terms: n * 2^-52 bounds the order of summation.
  EXPECT_NEAR(comparison.max_relative_difference, 1 / std::sqrt(squares), 18 * 0x1p-52);
}

TEST(CompareCheckpoints, TellsOptimizerStateFromWeights) {
  const Comparison comparison = compare_after(
      [](SampleState& s) { s.set_float(s.parts.optimizer, "exp_avg/conv1.bias", 1, 0.0F); });
  ASSERT_EQ(comparison.differences.size(), 1U);
  EXPECT_EQ(comparison.differences[0].field, "exp_avg/conv1.bias[1]");
  EXPECT_THAT(
      comparison.differences[0].likely_reason,
      AllOf(HasSubstr("optimizer state: not restored"), HasSubstr("weights are still equal")));
  EXPECT_TRUE(std::isinf(comparison.max_relative_difference) ||
              comparison.max_relative_difference > 0);
}

TEST(CompareCheckpoints, NamesEveryKindOfState) {
  const auto first = [](const auto& change) {
    const Comparison comparison = compare_after(change);
    return comparison.differences.empty() ? Difference{} : comparison.differences.front();
  };
  EXPECT_THAT(first([](SampleState& s) { s.parts.ranks[0].cpu_rng_hex = "0102"; }).likely_reason,
              HasSubstr("RNG"));
  EXPECT_EQ(first([](SampleState& s) { s.parts.trainer.samples_in_epoch = 0; }).field,
            "samples_in_epoch");
  EXPECT_EQ(first([](SampleState& s) { s.parts.trainer.scaler->growth_tracker = 0; }).field,
            "scaler");
  EXPECT_EQ(first([](SampleState& s) { s.parts.trainer.scaler.reset(); }).right, "none");
  EXPECT_THAT(first([](SampleState& s) { s.parts.trainer.last_learning_rate = 0.5; }).likely_reason,
              HasSubstr("schedule"));
  EXPECT_EQ(first([](SampleState& s) { s.parts.model.pop_back(); }).right, "absent");
  EXPECT_EQ(first([](SampleState& s) { s.parts.model[1].shape = {2, 1}; }).right, "F32 [2, 1]");
}

TEST(CompareCheckpoints, ValuesThatLookAlikeShowTheirBits) {
  const TemporaryFolder left;
  const TemporaryFolder right;
  SampleState zero(10);
  zero.set_float(zero.parts.model, "conv1.bias", 0, 0.0F);
  SampleState negative_zero(10);
  negative_zero.set_float(negative_zero.parts.model, "conv1.bias", 0, -0.0F);
  const Comparison comparison =
      compare_runs(commit_checkpoint(request_for(left.path(), zero)).path,
                   commit_checkpoint(request_for(right.path(), negative_zero)).path);
  ASSERT_EQ(comparison.differences.size(), 1U);
  EXPECT_THAT(comparison.differences[0].left, HasSubstr("bits 0x00000000"));
  EXPECT_THAT(comparison.differences[0].right, HasSubstr("bits 0x80000000"));
  EXPECT_EQ(comparison.max_relative_difference, 0);
}

TEST(CompareCheckpoints, AFewBytesDecodeRightInEveryDtype) {
  struct Case {
    std::string dtype;
    std::vector<unsigned char> left;
    std::vector<unsigned char> right;
    std::string left_text;
    std::string right_text;
  };
  const std::vector<Case> cases = {
      {"F64", {0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, {0, 0, 0, 0, 0, 0, 0, 0x40}, "1.5", "2"},
      {"F16", {0x00, 0x3e}, {0x01, 0x00}, "1.5", "5.960464477539063e-08"},
      {"F16", {0xff, 0x7b}, {0x00, 0xfc}, "65504", "-inf (bits 0xfc00)"},
      {"BF16", {0xc0, 0x3f}, {0xc0, 0xbf}, "1.5", "-1.5"},
      {"I64",
       {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
       {0, 0, 0, 0, 0, 0, 0, 0x80},
       "9223372036854775807",
       "-9223372036854775808"},
      {"I32", {0xff, 0xff, 0xff, 0xff}, {2, 0, 0, 0}, "-1", "2"},
      {"I16", {0x00, 0x80}, {2, 0}, "-32768", "2"},
      {"I8", {0x80}, {2}, "-128", "2"},
      {"U8", {0x80}, {2}, "128", "2"},
      {"BOOL", {0}, {1}, "0", "1"}};
  for (const Case& item : cases) {
    const TemporaryFolder left;
    const TemporaryFolder right;
    SampleState first(10);
    SampleState second(10);
    first.parts.model.push_back(first.add("x", item.dtype, {}, item.left.data(), item.left.size()));
    second.parts.model.push_back(
        second.add("x", item.dtype, {}, item.right.data(), item.right.size()));
    const Comparison comparison =
        compare_runs(commit_checkpoint(request_for(left.path(), first)).path,
                     commit_checkpoint(request_for(right.path(), second)).path);
    ASSERT_EQ(comparison.differences.size(), 1U) << item.dtype;
    EXPECT_EQ(comparison.differences[0].field, "x");
    EXPECT_EQ(comparison.differences[0].left, item.left_text) << item.dtype;
    EXPECT_EQ(comparison.differences[0].right, item.right_text) << item.dtype;
  }
}

TEST(CompareCheckpoints, ManifestsAloneAreComparedByChecksums) {
  const TemporaryFolder left;
  const TemporaryFolder right;
  const std::string first = commit_sample(left.path(), 10);
  SampleState state(10);
  state.set_float(state.parts.optimizer, "exp_avg/conv1.bias", 0, 5);
  const std::string second = commit_checkpoint(request_for(right.path(), state)).path;
  for (const std::string& name : list_directory(first)) {
    if (name != kManifestFile) std::filesystem::remove(join_path(first, name));
  }
  const Comparison comparison = compare_runs(first, second);
  ASSERT_EQ(comparison.differences.size(), 1U);
  EXPECT_EQ(comparison.differences[0].field, "exp_avg/conv1.bias");
  const TemporaryFolder control;
  EXPECT_TRUE(compare_runs(first, commit_sample(control.path(), 10)).is_bit_equal());
}

TEST(CompareCheckpoints, DamageIsUnreadableNotDifferent) {
  const TemporaryFolder left;
  const TemporaryFolder right;
  const std::string first = commit_sample(left.path(), 10);
  const std::string second = commit_sample(right.path(), 10);
  flip_byte(join_path(second, kModelFile), 300);
  EXPECT_THAT(thrown_message<CheckpointError>([&] { compare_runs(first, second); }),
              HasSubstr("model.safetensors"));
  EXPECT_THROW(compare_runs(first, left.path()), CheckpointError);
  EXPECT_THROW(compare_runs(first, join_path(left.path(), "none")), CheckpointError);
  const TemporaryFolder empty;
  EXPECT_THAT(thrown_message<CheckpointError>([&] { compare_runs(left.path(), empty.path()); }),
              HasSubstr(empty.path()));
}

}  // namespace
}  // namespace assay::checkpoints
