// How scenarios become verdicts and how the output folder is treated; with scenarios made here.
#include "harness/acceptance.h"

#include <csignal>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "harness/checksums.h"

namespace assay::harness {
namespace {

using ::testing::HasSubstr;

std::optional<std::string> here(const ScenarioContext&) { return std::nullopt; }
std::optional<std::string> not_here(const ScenarioContext&) { return "this machine has no X"; }

Outcome outcome(const std::string& check, std::optional<double> measured = std::nullopt) {
  Outcome made;
  made.check = check;
  made.measured = measured;
  return made;
}

class OneScenario : public ::testing::Test {
 protected:
  OneScenario() : context_(suite_, environment_, interrupt_, {.output = folder_.path()}) {
    scenario_.key = "smoke";
    scenario_.needs.name = "smoke";
    scenario_.needs.checks = {"first", "second"};
    scenario_.reason_not_to_run = here;
    settings_.name = "smoke";
    settings_.checks["first"] = CheckSetting{};
    settings_.checks["second"].threshold = 2;
  }

  ScenarioResult run(void (*body)(ScenarioContext&, Recorder&)) {
    scenario_.run = body;
    return run_scenario(scenario_, settings_, context_, &signal_number_);
  }

  TemporaryFolder folder_;
  Suite suite_;
  platform::Environment environment_;
  Interrupt interrupt_;
  ScenarioContext context_;
  Scenario scenario_;
  ScenarioSettings settings_;
  int signal_number_ = 0;
};

TEST_F(OneScenario, PassesWhenEveryCheckDoes) {
  const ScenarioResult result = run([](ScenarioContext&, Recorder& recorder) {
    recorder.judge(true, outcome("first"));
    recorder.at_most(outcome("second", 2.0));
  });
  EXPECT_EQ(result.verdict, Verdict::kPass);
  EXPECT_EQ(result.checks[1].threshold, 2);
}

TEST_F(OneScenario, ACheckThatWasNeverReportedIsNoPass) {
  const ScenarioResult result =
      run([](ScenarioContext&, Recorder& recorder) { recorder.judge(true, outcome("first")); });
  EXPECT_EQ(result.verdict, Verdict::kCouldNotRun);
  EXPECT_EQ(result.checks[1].verdict, Verdict::kCouldNotRun);
}

TEST_F(OneScenario, NotANumberMeetsNoThreshold) {
  const ScenarioResult result = run([](ScenarioContext&, Recorder& recorder) {
    recorder.judge(true, outcome("first"));
    recorder.at_most(outcome("second", std::numeric_limits<double>::quiet_NaN()));
  });
  EXPECT_EQ(result.verdict, Verdict::kFail);
}

TEST_F(OneScenario, UnreadableFilesOfTheTrainerFail) {
  const ScenarioResult result = run([](ScenarioContext&, Recorder&) {
    throw CheckpointError("metrics.jsonl line 3 is garbage");
  });
  EXPECT_EQ(result.verdict, Verdict::kFail);
  EXPECT_EQ(result.checks[0].name, "smoke.evidence_readable");
  EXPECT_THAT(result.reason, HasSubstr("line 3"));
}

TEST_F(OneScenario, WhatTheMachineLacksIsNoVerdict) {
  EXPECT_EQ(
      run([](ScenarioContext&, Recorder&) { throw CouldNotRunError("no trainer here"); }).verdict,
      Verdict::kCouldNotRun);
  EXPECT_EQ(run([](ScenarioContext&, Recorder&) {
              throw FileError("write", "somewhere", ENOSPC);
            }).verdict,
            Verdict::kCouldNotRun);
  scenario_.reason_not_to_run = not_here;
  const ScenarioResult result = run([](ScenarioContext&, Recorder&) { FAIL() << "it was run"; });
  EXPECT_EQ(result.verdict, Verdict::kCouldNotRun);
  EXPECT_EQ(result.reason, "this machine has no X");
}

TEST_F(OneScenario, AFailureBeforeTheStopStaysAFailure) {
  const ScenarioResult result = run([](ScenarioContext& context, Recorder& recorder) {
    recorder.judge(false, outcome("first"));
    raise(SIGINT);
    context.interrupt().check();
  });
  EXPECT_EQ(result.verdict, Verdict::kFail);
  EXPECT_EQ(signal_number_, SIGINT);
}

TEST_F(OneScenario, ReportingACheckTwiceOrUndeclaredIsABug) {
  EXPECT_THROW(run([](ScenarioContext&, Recorder& recorder) {
                 recorder.judge(true, outcome("first"));
                 recorder.judge(true, outcome("first"));
               }),
               InternalError);
  EXPECT_THROW(
      run([](ScenarioContext&, Recorder& recorder) { recorder.judge(true, outcome("third")); }),
      InternalError);
}

TEST_F(OneScenario, NotApplicableNeverWaivesTheScenario) {
  const ScenarioResult result = run([](ScenarioContext&, Recorder& recorder) {
    recorder.judge(true, outcome("first"));
    recorder.not_applicable("second", "no GPU");
  });
  EXPECT_EQ(result.verdict, Verdict::kPass);
  EXPECT_EQ(result.checks[1].verdict, Verdict::kCouldNotRun);
  EXPECT_FALSE(result.checks[1].is_required);
}

AcceptanceRequest request_for(const std::string& output, std::vector<std::string> scenarios) {
  AcceptanceRequest request;
  request.suite_text = std::string(embedded_suite_text("quick"));
  request.suite = parse_suite(request.suite_text, "quick", needs_of_scenarios());
  request.named_scenarios = std::move(scenarios);
  request.output = output;
  return request;
}

std::vector<std::string> required_scenarios(const AcceptanceResult& result) {
  std::vector<std::string> names;
  for (const ScenarioResult& scenario : result.report.scenarios) {
    if (scenario.is_required) names.push_back(scenario.name);
  }
  return names;
}

TEST(RunAcceptance, AScenarioOfALaterReleaseGivesNoVerdict) {
  TemporaryFolder folder;
  const std::string output = join_path(folder.path(), "acceptance");
  const AcceptanceResult result = run_acceptance(request_for(output, {"soak"}));
  EXPECT_EQ(exit_code_of_acceptance(result), 8);
  // Only the named one decides; the others of the contract are said by name.
  EXPECT_EQ(required_scenarios(result), std::vector<std::string>{"soak"});
  EXPECT_EQ(result.report.scenarios.size(), 10u);
  for (const ScenarioResult& scenario : result.report.scenarios) {
    EXPECT_EQ(scenario.reason, "not in this release (0.1)");
    EXPECT_EQ(scenario.verdict, Verdict::kCouldNotRun);
  }
  for (const char* file : {"report.json", "report.md", "report.html", "junit.xml", "SHA256SUMS",
                           "evidence/platform.json", "evidence/suite.json"}) {
    EXPECT_TRUE(path_exists(join_path(output, file))) << file;
  }
  EXPECT_TRUE(verify_checksums(output).findings.empty());
}

TEST(RunAcceptance, RunsAgainIntoItsOwnFolderAndKeepsTheOtherScenarios) {
  TemporaryFolder folder;
  run_acceptance(request_for(folder.path(), {"soak"}));
  const AcceptanceResult result = run_acceptance(request_for(folder.path(), {"data"}));
  EXPECT_EQ(required_scenarios(result),
            (std::vector<std::string>{"data", "soak"}));  // contract.md's order
  EXPECT_TRUE(verify_checksums(folder.path()).findings.empty());
}

TEST(RunAcceptance, RefusesForeignFilesAndTouchesNothing) {
  TemporaryFolder folder;
  std::ofstream(join_path(folder.path(), "thesis.txt")) << "mine";
  try {
    run_acceptance(request_for(folder.path(), {"soak"}));
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("thesis.txt"));
  }
  EXPECT_EQ(read_file(join_path(folder.path(), "thesis.txt")), "mine");
}

TEST(RunAcceptance, RefusesAnotherSuiteInTheSameFolder) {
  TemporaryFolder folder;
  run_acceptance(request_for(folder.path(), {"soak"}));
  AcceptanceRequest other = request_for(folder.path(), {"soak"});
  other.suite.name = "other";
  other.suite.digest = "other";
  EXPECT_THROW(run_acceptance(other), ConfigError);
}

TEST(RunAcceptance, SuggestsTheNearestScenario) {
  TemporaryFolder folder;
  try {
    run_acceptance(request_for(folder.path(), {"smok"}));
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"smoke\""));
  }
}

TEST(AcceptanceFolder, IsHeldByOneAtATime) {
  TemporaryFolder folder;
  const AcceptanceFolder first(folder.path(), false);
  try {
    const AcceptanceFolder second(folder.path(), false);
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("in use by process"));
  }
}

TEST(AcceptanceFolder, APreviousAcceptanceNeedsNamedScenarios) {
  TemporaryFolder folder;
  run_acceptance(request_for(folder.path(), {"soak"}));
  try {
    const AcceptanceFolder again(folder.path(), false);
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--scenarios"));
  }
}

TEST(DescribeDevice, NeverCallsAnUnusableGpuACpu) {
  platform::Environment machine;
  machine.cpu.model = "Model";
  machine.cpu.available_cpus = 2;
  EXPECT_EQ(describe_device(machine), "CPU only: Model, 2 CPUs");
  machine.is_gpu_present = true;
  machine.nvml_problem = "driver not loaded";
  EXPECT_THAT(describe_device(machine), HasSubstr("not usable: driver not loaded"));
}

}  // namespace
}  // namespace assay::harness
