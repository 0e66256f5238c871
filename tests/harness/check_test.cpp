// The rules of contract.md, "Acceptance folder", as a table.
#include "harness/check.h"

#include <gtest/gtest.h>

#include "harness/acceptance.h"

namespace assay::harness {
namespace {

constexpr Verdict kPass = Verdict::kPass;
constexpr Verdict kFail = Verdict::kFail;
constexpr Verdict kWaived = Verdict::kCouldNotRun;

Check check_of(Verdict verdict, bool is_required) {
  Check check;
  check.verdict = verdict;
  check.is_required = is_required;
  return check;
}

struct ScenarioRule {
  std::vector<Check> checks;
  Verdict expected;
};

TEST(VerdictOfChecks, FollowsTheTable) {
  const std::vector<ScenarioRule> rules = {
      {{}, kWaived},
      {{check_of(kPass, true)}, kPass},
      {{check_of(kPass, true), check_of(kFail, true)}, kFail},
      {{check_of(kWaived, true), check_of(kFail, true)}, kFail},
      {{check_of(kPass, true), check_of(kWaived, true)}, kWaived},
      {{check_of(kPass, true), check_of(kFail, false)}, kPass},
      {{check_of(kPass, true), check_of(kWaived, false)}, kPass},
      {{check_of(kWaived, false)}, kWaived},
      {{check_of(kFail, false)}, kWaived},
      {{check_of(kPass, false)}, kPass},
  };
  for (size_t i = 0; i < rules.size(); ++i) {
    EXPECT_EQ(verdict_of_checks(rules[i].checks), rules[i].expected) << "row " << i;
  }
}

ScenarioResult scenario_of(Verdict verdict, bool is_required) {
  ScenarioResult scenario;
  scenario.verdict = verdict;
  scenario.is_required = is_required;
  return scenario;
}

struct OverallRule {
  std::vector<ScenarioResult> scenarios;
  Verdict expected;
  int exit_code;
};

TEST(OverallVerdict, FollowsTheTableWithItsExitCodes) {
  const std::vector<OverallRule> rules = {
      {{}, kWaived, 8},
      {{scenario_of(kPass, true)}, kPass, 0},
      {{scenario_of(kPass, true), scenario_of(kWaived, false)}, kPass, 0},
      {{scenario_of(kPass, true), scenario_of(kWaived, true)}, kWaived, 8},
      {{scenario_of(kWaived, true), scenario_of(kFail, true)}, kFail, 6},
      {{scenario_of(kPass, true), scenario_of(kFail, false)}, kFail, 6},
      {{scenario_of(kWaived, false)}, kWaived, 8},
  };
  for (size_t i = 0; i < rules.size(); ++i) {
    AcceptanceResult result;
    result.report.verdict = overall_verdict(rules[i].scenarios);
    EXPECT_EQ(result.report.verdict, rules[i].expected) << "row " << i;
    EXPECT_EQ(exit_code_of_acceptance(result), rules[i].exit_code) << "row " << i;
  }
}

TEST(ExitCodeOfAcceptance, NamesTheSignalThatEndedIt) {
  AcceptanceResult result;
  result.report.verdict = kFail;
  result.signal_number = 2;
  EXPECT_EQ(exit_code_of_acceptance(result), 130);
}

TEST(VerdictName, ReadsBackItself) {
  for (const Verdict verdict : {kPass, kFail, kWaived}) {
    EXPECT_EQ(verdict_from_name(verdict_name(verdict)), verdict);
  }
  EXPECT_FALSE(verdict_from_name("passed").has_value());
}

}  // namespace
}  // namespace assay::harness
