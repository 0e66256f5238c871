// An acceptance as a whole: what was judged, where, with which result. Written as report.json, .md,
// .html and junit.xml; report.json is read back when scenarios are run again into the same folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/check.h"
#include "harness/report/strings.h"
#include "harness/scorecard.h"

namespace assay::harness {

inline constexpr int64_t kReportSchemaVersion = 1;  // part of the format

struct Report {
  Verdict verdict = Verdict::kCouldNotRun;
  bool is_finished = false;  // false: interrupted, or still going on
  std::string stop_reason;   // why it is not finished
  std::string suite;
  std::string suite_digest;
  std::string suite_description;
  std::string config_file;    // the user's configuration; empty: none
  std::string config_digest;  // SHA-256 of that file
  std::string started_utc;
  std::string finished_utc;
  double seconds = 0;
  std::string version;  // assay's, with commit
  std::string command;
  std::string device;         // "CPU only", "1 x NVIDIA H200"
  std::string platform_json;  // JSON object text of platform::to_json
  std::vector<ScenarioResult> scenarios;
  std::vector<ScoreLine> scorecard;
};

std::string report_to_json(const Report& report);
// Throws DataError naming `origin` and the key.
Report report_from_json(std::string_view text, const std::string& origin);

std::string report_to_markdown(const Report& report, Language language);
std::string report_to_junit(const Report& report);
// `folder`: where the curves' metrics files lie (the acceptance folder).
std::string report_to_html(const Report& report, Language language, const std::string& folder);

}  // namespace assay::harness
