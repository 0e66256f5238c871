// `assay estimate` through the built programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "tests/support/program.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;

class EstimateProgram : public testing::Test {
 protected:
  support::ProgramEnd run(const std::string& program, const Words& words) const {
    Words command = {program, "estimate"};
    command.insert(command.end(), words.begin(), words.end());
    return support::run_program({.command = command,
                                 .environment = {{"ASSAY_TRAIN", ASSAY_TRAIN_PROGRAM}},
                                 .working_directory = folder_.path()});
  }
  support::ProgramEnd estimate(const Words& words) const { return run(ASSAY_PROGRAM, words); }
  nlohmann::json json(Words words) const {
    words.push_back("--json");
    return nlohmann::json::parse(estimate(words).output);
  }
  std::string path(const std::string& name) const { return join_path(folder_.path(), name); }

 private:
  TemporaryFolder folder_;
};

TEST_F(EstimateProgram, SaysWhatTheDefaultRunNeeds) {
  const support::ProgramEnd end = estimate({});
  EXPECT_EQ(end.code, 0) << end.output;
  EXPECT_THAT(end.output,
              AllOf(HasSubstr("mnist_cnn: 1199882 parameters"), HasSubstr("steady peak"),
                    HasSubstr("a checkpoint"), HasSubstr("24 GB"), HasSubstr("it fits")));
}

TEST_F(EstimateProgram, EndsWithSixWhereTheRunDoesNotFit) {
  // Some 400 TB of activations.
  const support::ProgramEnd end = estimate({"--device=cpu", "--batch_size=1000000000"});
  EXPECT_EQ(end.code, 6) << end.output;
  EXPECT_THAT(end.output, HasSubstr("does NOT fit"));
}

TEST_F(EstimateProgram, NamesTheRungForSmallCards) {
  const auto report = json({"--model=gpt2_xl", "--batch_size=8", "--bf16"});
  const auto& cards = report.at("cards");
  ASSERT_EQ(cards.size(), 5u);
  EXPECT_EQ(cards.at(4).at("fits_with").at("rung"), "as configured");
  EXPECT_EQ(cards.at(2).at("fits_with").at("rung"), "accumulate");
  EXPECT_EQ(report.at("kv_cache").size(), 4u);
}

TEST_F(EstimateProgram, PredictsSeveralRanks) {
  const auto report = json({"--model=gpt2", "--batch_size=4", "--bf16", "--world=1,8", "--world=64",
                            "--card=h100", "--step-ms=50", "--ddp_bucket_cap_mb=10"});
  const auto& scaling = report.at("scaling");
  ASSERT_EQ(scaling.at("rows").size(), 3u);
  EXPECT_EQ(scaling.at("rows").at(0).at("efficiency"), 1.0);
  EXPECT_NEAR(scaling.at("rows").at(0).at("step_ms").get<double>(), 50, 1e-9);
  const double on_node = scaling.at("rows").at(1).at("efficiency");
  const double over_nodes = scaling.at("rows").at(2).at("efficiency");
  EXPECT_LT(over_nodes, on_node);
  double bytes = 0;
  for (const auto& bucket : scaling.at("buckets")) bytes += bucket.at("bytes").get<double>();
  EXPECT_EQ(bytes, 4.0 * 124'439'808);
}

TEST_F(EstimateProgram, TakesAMeasuredRun) {
  const support::ProgramEnd trained = support::run_program(
      {.command = {ASSAY_TRAIN_PROGRAM, "train", "--output_dir", path("run"), "--max_steps=15",
                   "--batch_size=2", "--num_threads=1", "--max_train_samples=60",
                   "--max_eval_samples=2", "--device=cpu"}});
  ASSERT_EQ(trained.code, 0) << trained.output;
  const auto report = json({"--from-run", path("run"), "--world=2"});
  EXPECT_EQ(report.at("batch_size"), 2);
  EXPECT_THAT(report.at("scaling").at("step_source"), HasSubstr("12 steps of the run"));
  EXPECT_EQ(report.at("scaling").at("rows").size(), 1u);
  const support::ProgramEnd other = estimate({"--from-run", path("run"), "--batch_size=3"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.output,
              AllOf(HasSubstr("batch_size (2 in the run, 3 here)"), HasSubstr("Fix:")));
}

TEST_F(EstimateProgram, RefusesWrongWords) {
  const support::ProgramEnd unknown = estimate({"--wrold=8"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.output, HasSubstr("--world of assay estimate"));
  const support::ProgramEnd card = estimate({"--world=2", "--card=a100"});
  EXPECT_EQ(card.code, 2);
  EXPECT_THAT(card.output, AllOf(HasSubstr("--card is \"a100\""), HasSubstr("A100-SXM4-80GB")));
  EXPECT_EQ(estimate({"--model=gpt_tiny", "model.n_embd=130"}).code, 2);
  EXPECT_EQ(estimate({"--from-run=absent"}).code, 4);
}

TEST_F(EstimateProgram, PrintsItsHelpAndWritesNothing) {
  const support::ProgramEnd help = run(ASSAY_TRAIN_PROGRAM, {"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, HasSubstr("Usage: assay estimate"));
  estimate({"--output_dir", path("out")});
  EXPECT_FALSE(path_exists(path("out")));
}

}  // namespace
}  // namespace assay
