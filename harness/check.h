// What a scenario finds: checks with a verdict each, facts, advice and curves; and the rules that
// turn them into the verdict of a scenario and of a whole acceptance (contract.md, "Acceptance
// folder"). Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::harness {

// Part of the format of report.json.
enum class Verdict { kPass, kFail, kCouldNotRun };

std::string_view verdict_name(Verdict verdict);  // "pass", "fail", "could_not_run"
std::optional<Verdict> verdict_from_name(std::string_view name);

struct Check {
  std::string name = {};  // "smoke.steps_once"
  Verdict verdict = Verdict::kCouldNotRun;
  bool is_required = true;              // false: advisory, never changes a verdict
  std::optional<double> measured = {};  // where it is a number
  std::string measured_text = {};       // where it is words; may stand beside the number
  std::optional<double> threshold = {};
  std::string unit = {};
  std::string reason = {};                 // why this verdict, in words
  std::vector<std::string> evidence = {};  // paths relative to the acceptance folder
};

// A measured number or word that is shown but not judged.
struct Fact {
  std::string name = {};  // "timing.digits.step_median"
  std::optional<double> value = {};
  std::string text = {};
  std::string unit = {};
  std::string note = {};  // how it was measured, over which window
};

struct Advice {  // report.json's diagnosis[]
  std::string what = {};
  std::string evidence = {};
  std::string next_step = {};
};

// A curve of the report, read from a metrics file in the evidence.
struct Curve {
  std::string plot = {};  // "loss", "step_time", "phases"
  std::string label = {};
  std::string path = {};  // of a metrics.jsonl, relative to the acceptance folder
  int64_t mark_step = 0;  // 0: no mark
  std::string mark_label = {};
};

struct ScenarioResult {
  std::string name;
  Verdict verdict = Verdict::kCouldNotRun;
  bool is_required = true;  // named by the user, or required by the suite
  std::string reason;       // why it could not run
  std::string finished_utc;
  double seconds = 0;
  std::vector<Check> checks;
  std::vector<Fact> facts;
  std::vector<Advice> advice;
  std::vector<Curve> curves;
};

// Fail if a required check failed; else could_not_run if a required check could not run or no
// check passed at all; else pass.
Verdict verdict_of_checks(std::span<const Check> checks);

// Fail if a scenario failed; else could_not_run if a required scenario could not run, or nothing
// passed; else pass.
Verdict overall_verdict(std::span<const ScenarioResult> scenarios);

const Fact* find_fact(const ScenarioResult& scenario, std::string_view name);
const ScenarioResult* find_scenario(std::span<const ScenarioResult> scenarios,
                                    std::string_view name);

}  // namespace assay::harness
