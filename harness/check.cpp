#include "harness/check.h"

#include <algorithm>

namespace assay::harness {

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kFail:
      return "fail";
    case Verdict::kCouldNotRun:
      break;
  }
  return "could_not_run";
}

std::optional<Verdict> verdict_from_name(std::string_view name) {
  for (const Verdict verdict : {Verdict::kPass, Verdict::kFail, Verdict::kCouldNotRun}) {
    if (verdict_name(verdict) == name) return verdict;
  }
  return std::nullopt;
}

Verdict verdict_of_checks(std::span<const Check> checks) {
  bool is_any_passed = false;
  bool is_any_waived = false;
  for (const Check& check : checks) {
    if (check.verdict == Verdict::kPass) is_any_passed = true;
    if (!check.is_required) continue;
    if (check.verdict == Verdict::kFail) return Verdict::kFail;
    if (check.verdict == Verdict::kCouldNotRun) is_any_waived = true;
  }
  return is_any_passed && !is_any_waived ? Verdict::kPass : Verdict::kCouldNotRun;
}

Verdict overall_verdict(std::span<const ScenarioResult> scenarios) {
  bool is_any_passed = false;
  bool is_any_missing = false;
  for (const ScenarioResult& scenario : scenarios) {
    if (scenario.verdict == Verdict::kFail) return Verdict::kFail;
    if (scenario.verdict == Verdict::kPass) is_any_passed = true;
    if (scenario.verdict == Verdict::kCouldNotRun && scenario.is_required) is_any_missing = true;
  }
  return is_any_passed && !is_any_missing ? Verdict::kPass : Verdict::kCouldNotRun;
}

const Fact* find_fact(const ScenarioResult& scenario, std::string_view name) {
  const auto found = std::find_if(scenario.facts.begin(), scenario.facts.end(),
                                  [&](const Fact& fact) { return fact.name == name; });
  return found == scenario.facts.end() ? nullptr : &*found;
}

const ScenarioResult* find_scenario(std::span<const ScenarioResult> scenarios,
                                    std::string_view name) {
  const auto found = std::find_if(scenarios.begin(), scenarios.end(),
                                  [&](const ScenarioResult& s) { return s.name == name; });
  return found == scenarios.end() ? nullptr : &*found;
}

}  // namespace assay::harness
