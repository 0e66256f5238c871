// A report whose every text is hostile: markup, quotes, terminal escapes, broken UTF-8 (fault
// F138).
#pragma once

#include <string>

#include "harness/report/report.h"

namespace assay::harness {

inline const std::string kHostile =
    "<img src=x onerror=alert(1)></script><script>alert(2)</script>\" ' & \x1b[31m \xff | `x` "
    "\n]]>";

inline Report hostile_report() {
  Report report;
  report.verdict = Verdict::kFail;
  report.is_finished = false;
  report.stop_reason = kHostile;
  report.suite = kHostile;
  report.suite_description = kHostile;
  report.config_file = kHostile;
  report.command = kHostile;
  report.version = kHostile;
  report.device = kHostile;
  report.platform_json = "{\"host_name\": \"</pre><script>alert(3)</script>\"}";
  ScenarioResult scenario;
  scenario.name = "smoke";
  scenario.verdict = Verdict::kFail;
  scenario.reason = kHostile;
  Check check;
  check.name = kHostile;
  check.verdict = Verdict::kFail;
  check.measured_text = kHostile;
  check.unit = kHostile;
  check.reason = kHostile;
  check.evidence = {kHostile, "evidence/../../etc/passwd", "javascript:alert(4)",
                    "evidence/smoke/line_1/log.txt"};
  scenario.checks = {check};
  scenario.facts.push_back(
      {.name = kHostile, .value = 1.5, .text = kHostile, .unit = kHostile, .note = kHostile});
  scenario.advice.push_back({kHostile, kHostile, kHostile});
  scenario.curves.push_back({"loss", kHostile, "../../../etc/passwd", 3, kHostile});
  report.scenarios = {scenario};
  report.scorecard = {{"step_time", 1.5, kHostile, kHostile, kHostile}};
  return report;
}

}  // namespace assay::harness
