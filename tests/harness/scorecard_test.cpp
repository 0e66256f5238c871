#include "harness/scorecard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::harness {
namespace {

using ::testing::HasSubstr;

ScoreLine line_of(const std::vector<ScoreLine>& lines, const std::string& key) {
  for (const ScoreLine& line : lines) {
    if (line.key == key) return line;
  }
  ADD_FAILURE() << "no line " << key;
  return {};
}

std::vector<ScenarioResult> measured() {
  ScenarioResult smoke;
  smoke.name = "smoke";
  smoke.verdict = Verdict::kPass;
  ScenarioResult timing;
  timing.name = "timing";
  timing.verdict = Verdict::kPass;
  const auto fact = [&](const std::string& name, double value, const std::string& unit) {
    timing.facts.push_back({.name = name, .value = value, .unit = unit, .note = "how"});
  };
  fact("timing.digits.step_median", 12, "ms");
  fact("timing.text.step_median", 20, "ms");
  fact("timing.digits.memory_process_peak", 250e6, "bytes");
  fact("timing.text.memory_process_peak", 400e6, "bytes");
  fact("timing.digits.cpu_utilisation", 0.9, "fraction");
  fact("timing.text.cpu_utilisation", 0.7, "fraction");
  ScenarioResult resume;
  resume.name = "resume";
  resume.verdict = Verdict::kFail;
  Check check;
  check.name = "resume.same_as_uninterrupted";
  check.verdict = Verdict::kFail;
  check.measured_text = "9 bit-equal, 0 within tolerance, 1 broken";
  resume.checks = {check};
  return {smoke, timing, resume};
}

TEST(MakeScorecard, HasTheLinesOfTheMissionInOrder) {
  std::vector<std::string> keys;
  for (const ScoreLine& line : make_scorecard(measured(), {1000000000, false})) {
    keys.push_back(line.key);
  }
  EXPECT_THAT(keys, ::testing::ElementsAre("finished_stably", "peak_memory", "memory_headroom",
                                           "step_time", "mean_utilisation", "read_wait",
                                           "save_time", "resume_result", "error_rate"));
}

TEST(MakeScorecard, TakesTheWorstWorkloadAndNamesAll) {
  const auto lines = make_scorecard(measured(), {1000000000, false});
  EXPECT_EQ(line_of(lines, "step_time").value, 20);
  EXPECT_THAT(line_of(lines, "step_time").text, HasSubstr("digits 12 ms, text 20 ms"));
  EXPECT_EQ(line_of(lines, "peak_memory").value, 400e6);
  EXPECT_NEAR(*line_of(lines, "memory_headroom").value, 0.6, 1e-12);
  EXPECT_EQ(line_of(lines, "mean_utilisation").value, 0.7);
  EXPECT_THAT(line_of(lines, "mean_utilisation").note, HasSubstr("CPU only"));
  EXPECT_THAT(line_of(lines, "resume_result").text, HasSubstr("1 broken"));
  EXPECT_EQ(line_of(lines, "finished_stably").text, "no");
  EXPECT_EQ(line_of(lines, "error_rate").value, 1.0);
}

TEST(MakeScorecard, SaysWhyALineHasNoValue) {
  for (const ScoreLine& line : make_scorecard(std::vector<ScenarioResult>{}, {})) {
    EXPECT_FALSE(line.value.has_value()) << line.key;
    EXPECT_FALSE(line.note.empty()) << line.key;
  }
}

TEST(MakeScorecard, InventsNoUtilisationForAGpu) {
  const ScoreLine line =
      line_of(make_scorecard(measured(), {80000000000, true}), "mean_utilisation");
  EXPECT_FALSE(line.value.has_value());
  EXPECT_THAT(line.note, HasSubstr("not sampled"));
}

}  // namespace
}  // namespace assay::harness
