#include "harness/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "harness/kill_plan.h"
#include "harness/report/strings.h"
#include "harness/scenarios/scenario.h"

namespace assay::harness {
namespace {

using ::testing::HasSubstr;

Suite embedded(const std::string& name) {
  return parse_suite(embedded_suite_text(name), name, needs_of_scenarios());
}

// The quick suite changed by one hand, and what the parser says to it.
std::string refusal(const std::function<void(nlohmann::json&)>& change) {
  auto json = nlohmann::json::parse(embedded_suite_text("quick"));
  change(json);
  try {
    parse_suite(json.dump(), "mine.json", needs_of_scenarios());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(EmbeddedSuites, AllParseAndHoldTheSameScenarios) {
  EXPECT_THAT(embedded_suite_names(), ::testing::ElementsAre("quick", "standard", "full"));
  std::vector<std::string> quick_names;
  for (const ScenarioSettings& settings : embedded("quick").scenarios) {
    quick_names.push_back(settings.name);
  }
  EXPECT_THAT(quick_names, ::testing::ElementsAre("environment", "storage", "smoke", "timing",
                                                  "resume", "equivalence"));
  for (const std::string name : {"standard", "full"}) {
    const Suite suite = embedded(name);
    ASSERT_EQ(suite.scenarios.size(), quick_names.size()) << name;
    for (size_t i = 0; i < quick_names.size(); ++i) {
      EXPECT_EQ(suite.scenarios[i].name, quick_names[i]) << name;
    }
  }
}

TEST(EmbeddedSuites, EveryThresholdHasAReasonAndEveryKillExists) {
  for (const std::string& name : embedded_suite_names()) {
    for (const ScenarioSettings& settings : embedded(name).scenarios) {
      for (const auto& [check, setting] : settings.checks) {
        EXPECT_TRUE(!setting.threshold || !setting.reason.empty()) << name << " " << check;
      }
      for (const auto& [list, words] : settings.lists) {
        if (!list.ends_with("_kills")) continue;
        for (const std::string& word : words) EXPECT_NO_THROW(parse_kill(word)) << word;
      }
    }
  }
}

TEST(EmbeddedSuites, QuickExpectsAtMostFourMinutesAndGrowsFromThere) {
  const auto seconds = [](const std::string& name) {
    double sum = 0;
    for (const ScenarioSettings& settings : embedded(name).scenarios) {
      sum += settings.expected_seconds;
    }
    return sum;
  };
  EXPECT_LE(seconds("quick"), 240);
  EXPECT_LT(seconds("quick"), seconds("standard"));
  EXPECT_LT(seconds("standard"), seconds("full"));
}

TEST(Scenarios, EveryCheckAndScenarioHasItsTextsInBothLanguages) {
  for (const Scenario& scenario : all_scenarios()) {
    EXPECT_TRUE(has_report_text("scenario." + std::string(scenario.key))) << scenario.key;
    for (const std::string& check : scenario.needs.checks) {
      ASSERT_TRUE(has_report_text(check)) << check;
      EXPECT_NE(report_text(Language::kEnglish, check), report_text(Language::kChinese, check));
    }
  }
}

TEST(Scenarios, AreThoseOfTheContractInItsOrder) {
  EXPECT_THAT(scenario_keys(), ::testing::ElementsAre(
                                   "environment", "storage", "smoke", "timing", "data", "transfer",
                                   "scale", "resume", "faults", "distributed", "precision",
                                   "memory", "equivalence", "loss_curve", "soak", "selftest"));
}

TEST(ParseSuite, SuggestsTheNearestSpellingOfACheck) {
  const std::string message = refusal([](nlohmann::json& json) {
    auto& checks = json["scenarios"][2]["checks"];
    checks["smoke.step_once"] = checks["smoke.steps_once"];
    checks.erase("smoke.steps_once");
  });
  EXPECT_THAT(message, HasSubstr("mine.json"));
  EXPECT_THAT(message, HasSubstr("did you mean \"smoke.checks.smoke.steps_once\""));
  EXPECT_THAT(message, HasSubstr("smoke.checks.smoke.steps_once is missing"));
}

TEST(ParseSuite, NamesEveryProblemAtOnce) {
  const std::string message = refusal([](nlohmann::json& json) {
    json["seeed"] = 1;
    json["scenarios"][3]["sizes"]["steps"] = -5;
    json["scenarios"][0]["name"] = "enviroment";
  });
  EXPECT_THAT(message, HasSubstr("did you mean \"seed\""));
  EXPECT_THAT(message, HasSubstr("timing.sizes.steps is -5, must lie in [0,"));
  EXPECT_THAT(message, HasSubstr("did you mean \"environment\""));
}

TEST(ParseSuite, DemandsAReasonForAThresholdAndForAnAdvisoryCheck) {
  EXPECT_THAT(refusal([](nlohmann::json& json) {
                json["scenarios"][3]["checks"]["timing.phases_add_up"].erase("reason");
              }),
              HasSubstr("timing.phases_add_up.reason is missing"));
  EXPECT_THAT(refusal([](nlohmann::json& json) {
                json["scenarios"][2]["checks"]["smoke.result"]["required"] = false;
              }),
              HasSubstr("smoke.result.reason is missing"));
}

TEST(ParseSuite, RefusesAThresholdWhereNothingIsMeasuredAgainstIt) {
  EXPECT_THAT(refusal([](nlohmann::json& json) {
                json["scenarios"][2]["checks"]["smoke.result"]["threshold"] = 3;
              }),
              HasSubstr("threshold\" is unknown"));
}

TEST(ParseSuite, RefusesWrongTypes) {
  EXPECT_THAT(refusal([](nlohmann::json& json) { json["scenarios"] = 3; }),
              HasSubstr("scenarios is 3, must be array"));
  EXPECT_THAT(refusal([](nlohmann::json& json) { json["scenarios"][0]["required"] = "yes"; }),
              HasSubstr("required is \"yes\", must be boolean"));
}

TEST(ParseSuite, RefusesTextThatIsNoJson) {
  EXPECT_THROW(parse_suite("{", "mine.json", needs_of_scenarios()), ConfigError);
}

TEST(EmbeddedSuiteText, SuggestsTheNearestName) {
  try {
    embedded_suite_text("quik");
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"quick\""));
  }
}

}  // namespace
}  // namespace assay::harness
