// junit.xml: one suite a scenario, one case a check. A check that could not run is skipped; an
// advisory finding is skipped too, since it never fails a build, and says so.
#include "base/text.h"
#include "harness/report/escape.h"
#include "harness/report/report.h"
#include "harness/report/report_cells.h"

namespace assay::harness {
namespace {

struct Counts {
  int64_t tests = 0;
  int64_t failures = 0;
  int64_t skipped = 0;
};

bool is_failure(const Check& check) { return check.verdict == Verdict::kFail && check.is_required; }

Counts count(const ScenarioResult& scenario) {
  Counts counts;
  for (const Check& check : scenario.checks) {
    ++counts.tests;
    if (is_failure(check)) ++counts.failures;
    if (!is_failure(check) && check.verdict != Verdict::kPass) ++counts.skipped;
  }
  if (scenario.checks.empty()) counts = {1, 0, 1};
  return counts;
}

std::string case_xml(const ScenarioResult& scenario, const Check& check) {
  std::string xml = cat("    <testcase classname=\"", markup_escaped(scenario.name), "\" name=\"",
                        markup_escaped(check.name), "\" time=\"0\"");
  const std::string words = markup_escaped(cat(check.reason, "; measured ", measured_cell(check),
                                               "; threshold ", threshold_cell(check)));
  if (check.verdict == Verdict::kPass) return xml + "/>\n";
  if (is_failure(check)) {
    return cat(xml, "><failure message=\"", words, "\"/></testcase>\n");
  }
  const std::string kind = check.verdict == Verdict::kFail ? "advisory finding: " : "";
  return cat(xml, "><skipped message=\"", kind, words, "\"/></testcase>\n");
}

}  // namespace

std::string report_to_junit(const Report& report) {
  Counts total;
  std::string suites;
  for (const ScenarioResult& scenario : report.scenarios) {
    const Counts counts = count(scenario);
    total.tests += counts.tests;
    total.failures += counts.failures;
    total.skipped += counts.skipped;
    suites += cat("  <testsuite name=\"", markup_escaped(scenario.name), "\" tests=\"",
                  counts.tests, "\" failures=\"", counts.failures, "\" errors=\"0\" skipped=\"",
                  counts.skipped, "\" time=\"", shown_number(scenario.seconds), "\">\n");
    for (const Check& check : scenario.checks) suites += case_xml(scenario, check);
    if (scenario.checks.empty()) {
      suites += cat("    <testcase classname=\"", markup_escaped(scenario.name),
                    "\" name=\"could_not_run\" time=\"0\"><skipped message=\"",
                    markup_escaped(scenario.reason), "\"/></testcase>\n");
    }
    suites += "  </testsuite>\n";
  }
  return cat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay accept ",
             markup_escaped(report.suite), "\" tests=\"", total.tests, "\" failures=\"",
             total.failures, "\" errors=\"0\" skipped=\"", total.skipped, "\" time=\"",
             shown_number(report.seconds), "\">\n", suites, "</testsuites>\n");
}

}  // namespace assay::harness
