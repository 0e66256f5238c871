// What a scenario writes its findings with. It takes thresholds and the required flag from the
// suite, and sees to it that every declared check ends with exactly one verdict.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/check.h"
#include "harness/suite.h"

namespace assay::harness {

// One check's outcome as the scenario saw it.
struct Outcome {
  std::string check = {};  // a declared name
  std::optional<double> measured = {};
  std::string measured_text = {};
  std::string unit = {};
  std::string reason = {};                 // what was found, in words
  std::vector<std::string> evidence = {};  // relative to the acceptance folder
};

// Main thread only; borrows all three. Reporting an undeclared check or one a second time is a bug
// of ours (InternalError).
class Recorder {
 public:
  Recorder(const ScenarioNeeds& needs, const ScenarioSettings& settings, ScenarioResult& result);

  double size(std::string_view name) const;
  int64_t count(std::string_view name) const;  // a size that is a whole number
  const std::vector<std::string>& list(std::string_view name) const;
  double threshold(std::string_view check) const;

  void judge(bool is_good, Outcome outcome);
  void at_most(Outcome outcome);  // measured <= threshold; NaN fails
  void at_least(Outcome outcome);
  void could_not_run(Outcome outcome);  // a required check then waives the scenario
  // The machine has nothing that this check is about: shown as could_not_run, never judged.
  void not_applicable(std::string_view check, const std::string& why);

  void fact(Fact fact);
  void advise(Advice advice);
  void show(Curve curve);

  // Closes the scenario: declared checks without a verdict become could_not_run with `why`.
  void close(const std::string& why);
  bool has_verdict(std::string_view check) const;

 private:
  void add(Verdict verdict, Outcome outcome);
  const CheckSetting& setting(std::string_view check) const;

  const ScenarioNeeds& needs_;
  const ScenarioSettings& settings_;
  ScenarioResult& result_;
};

}  // namespace assay::harness
