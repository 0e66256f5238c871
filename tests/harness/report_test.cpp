#include "harness/report/report.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "harness/report/escape.h"
#include "tests/harness/hostile_report.h"
#include "trainer/metrics/step_record.h"

namespace assay::harness {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Is every tag closed in order, every attribute quoted, every & an entity? Enough of XML for what
// we write ourselves; returns what is wrong, empty if nothing.
std::string markup_problem(std::string_view text, const std::vector<std::string>& void_tags) {
  std::vector<std::string> open;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '&' && text.substr(i, 12).find(';') == std::string_view::npos) {
      return cat("bare & at ", i);
    }
    if (text[i] != '<') continue;
    const size_t end = text.find('>', i);
    if (end == std::string_view::npos) return cat("< without > at ", i);
    const std::string_view tag = text.substr(i + 1, end - i - 1);
    if (tag.find('<') != std::string_view::npos) return cat("< inside a tag at ", i);
    const std::string name(tag.substr(0, tag.find_first_of(" /\n", 1)));
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return cat("odd quotes in <", tag, ">");
    if (tag.starts_with('/')) {
      if (open.empty() || "/" + open.back() != tag) return cat("<", tag, "> closes nothing");
      open.pop_back();
    } else if (!tag.ends_with('/') && !tag.starts_with('?') && !tag.starts_with('!') &&
               std::find(void_tags.begin(), void_tags.end(), name) == void_tags.end()) {
      open.push_back(name);
    }
    i = end;
  }
  return open.empty() ? "" : cat("<", open.back(), "> is never closed");
}

size_t count_of(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

Report small_report() {
  Report report;
  report.verdict = Verdict::kPass;
  report.is_finished = true;
  report.suite = "quick";
  report.suite_digest = "abc";
  report.started_utc = "2026-12-01T00:00:00.000Z";
  report.device = "CPU only: test";
  report.platform_json = "{\"host_name\":\"h\"}";
  ScenarioResult scenario;
  scenario.name = "timing";
  scenario.verdict = Verdict::kPass;
  Check check;
  check.name = "timing.phases_add_up";
  check.verdict = Verdict::kPass;
  check.measured = 0.001;
  check.threshold = 0.02;
  check.unit = "fraction of the step";
  check.reason = "all";
  check.evidence = {"evidence/timing/run/metrics.jsonl"};
  scenario.checks = {check};
  check.name = "timing.other_share";
  check.verdict = Verdict::kFail;
  check.is_required = false;
  check.measured = std::numeric_limits<double>::infinity();
  scenario.checks.push_back(check);
  scenario.advice.push_back({"what", "evidence", "next"});
  scenario.curves.push_back({"loss", "digits control", "evidence/metrics.jsonl", 0, ""});
  report.scenarios = {scenario};
  report.scorecard = make_scorecard(report.scenarios, {});
  return report;
}

TEST(ReportJson, HasTheKeysOfTheContract) {
  const auto json = nlohmann::json::parse(report_to_json(small_report()));
  for (const char* key :
       {"schema_version", "platform", "verdict", "scenarios", "scorecard", "diagnosis"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  const auto& check = json["scenarios"][0]["checks"][0];
  for (const char* key :
       {"name", "verdict", "required", "measured", "threshold", "unit", "reason", "evidence"}) {
    EXPECT_TRUE(check.contains(key)) << key;
  }
  EXPECT_EQ(json["verdict"], "pass");
  EXPECT_EQ(json["diagnosis"][0]["next_step"], "next");
  EXPECT_EQ(json["scenarios"][0]["checks"][1]["measured"], "inf");
}

TEST(ReportJson, ReadsBackWhatItWrote) {
  const std::string text = report_to_json(small_report());
  const Report read = report_from_json(text, "report.json");
  EXPECT_EQ(report_to_json(read), text);
  EXPECT_EQ(read.scenarios[0].checks[1].measured, std::numeric_limits<double>::infinity());
}

TEST(ReportJson, StaysValidWithHostileTexts) {
  const std::string text = report_to_json(hostile_report());
  EXPECT_TRUE(nlohmann::json::accept(text));
  EXPECT_EQ(report_from_json(text, "x").scenarios.size(), 1u);
}

TEST(ReportJson, RefusesForeignAndLaterFiles) {
  EXPECT_THROW(report_from_json("{}", "report.json"), DataError);
  EXPECT_THROW(report_from_json("[", "report.json"), DataError);
  auto json = nlohmann::json::parse(report_to_json(small_report()));
  json["schema_version"] = 99;
  try {
    report_from_json(json.dump(), "report.json");
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("schema_version 99, this program reads 1"));
  }
}

TEST(ReportJunit, IsWellFormedAndCountsEachCheckOnce) {
  const std::string xml = report_to_junit(small_report());
  EXPECT_EQ(markup_problem(xml, {}), "");
  EXPECT_THAT(xml, HasSubstr("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"1\""));
  EXPECT_THAT(xml, HasSubstr("advisory finding"));
  const std::string hostile = report_to_junit(hostile_report());
  EXPECT_EQ(markup_problem(hostile, {}), "");
  EXPECT_THAT(hostile, HasSubstr("failures=\"1\""));
  EXPECT_THAT(hostile, Not(HasSubstr("\x1b")));
}

TEST(ReportHtml, IsWellFormedAndPutsTheVerdictFirst) {
  TemporaryFolder folder;
  const std::string html = report_to_html(small_report(), Language::kEnglish, folder.path());
  EXPECT_EQ(markup_problem(html, {"meta", "br"}), "");
  EXPECT_LT(html.find("banner pass"), html.find("id=\"scorecard\""));
  EXPECT_LT(html.find("id=\"scorecard\""), html.find("id=\"s-timing\""));
  EXPECT_THAT(html, HasSubstr("class=\"finding\""));
  EXPECT_THAT(html, HasSubstr("0.1 % of the step"));  // fractions are shown as per cent
  EXPECT_THAT(html, HasSubstr("<td>2 %</td>"));
  EXPECT_THAT(html, HasSubstr("no data: the metrics file is missing"));
}

TEST(ReportHtml, ShowsHostileTextAsText) {
  TemporaryFolder folder;
  for (const Language language : {Language::kEnglish, Language::kChinese}) {
    const std::string html = report_to_html(hostile_report(), language, folder.path());
    EXPECT_EQ(markup_problem(html, {"meta", "br"}), "");
    EXPECT_EQ(count_of(html, "<script"), 0u);
    EXPECT_EQ(count_of(html, "<img"), 0u);
    EXPECT_THAT(html, Not(HasSubstr("\x1b")));
    EXPECT_THAT(html, HasSubstr("&lt;img src=x onerror=alert(1)&gt;"));
    EXPECT_TRUE(is_valid_utf8(html));
  }
}

TEST(ReportHtml, LinksOnlyIntoItsOwnEvidence) {
  TemporaryFolder folder;
  const std::string html = report_to_html(hostile_report(), Language::kEnglish, folder.path());
  EXPECT_THAT(html, HasSubstr("href=\"evidence/smoke/line_1/log.txt\""));
  EXPECT_EQ(count_of(html, "href=\""), count_of(html, "href=\"#s-") + 1);
}

TEST(ReportHtml, AllowsNothingFromElsewhere) {
  TemporaryFolder folder;
  const std::string html = report_to_html(small_report(), Language::kEnglish, folder.path());
  EXPECT_THAT(html, HasSubstr("default-src 'none'; style-src 'unsafe-inline'"));
  for (const char* remote : {"http://", "https://", "url(", "@import", "src="}) {
    EXPECT_THAT(html, Not(HasSubstr(remote)));
  }
}

TEST(ReportHtml, DrawsTheCurvesOfItsMetrics) {
  TemporaryFolder folder;
  create_directories(join_path(folder.path(), "evidence"));
  metrics::StepRecord record;
  std::ofstream file(join_path(folder.path(), "evidence/metrics.jsonl"));
  for (int64_t step = 1; step <= 5; ++step) {
    record.step = step;
    record.loss = step == 3 ? std::numeric_limits<double>::quiet_NaN() : 1.0 / double(step);
    file << metrics::to_json_line(record) << "\n";
  }
  file << "{\"step\":6,\"lo";  // a torn tail
  file.close();
  const std::string html = report_to_html(small_report(), Language::kEnglish, folder.path());
  EXPECT_THAT(html, HasSubstr("<polyline class=\"line s0\""));
  EXPECT_THAT(html, HasSubstr("Training loss: digits"));
  EXPECT_THAT(html, Not(HasSubstr("nan,")));
  EXPECT_EQ(markup_problem(html, {"meta", "br"}), "");
}

TEST(ReportMarkdown, KeepsATableARowWhateverTheText) {
  const std::string text = report_to_markdown(hostile_report(), Language::kEnglish);
  EXPECT_THAT(text, Not(HasSubstr("<img")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("\\`x\\`"));
  EXPECT_THAT(text, HasSubstr("\\|"));
}

TEST(ReportMarkdown, SpeaksChinese) {
  const std::string text = report_to_markdown(small_report(), Language::kChinese);
  EXPECT_THAT(text, HasSubstr("\u9a8c\u6536\u62a5\u544a"));  // acceptance report
  EXPECT_THAT(text, HasSubstr("\u901a\u8fc7"));              // pass
}

TEST(VisibleText, ShowsWhatWouldBeHidden) {
  EXPECT_EQ(visible_text("a\x1b[0m\x07"), "a\\x1b[0m\\x07");
  EXPECT_EQ(visible_text("\xff\xc3\xa9"), "\\xff\xc3\xa9");
  EXPECT_EQ(visible_text("a\xe2\x80\xae"
                         "b"),
            "a\\xe2\\x80\\xaeb");  // right-to-left override
  EXPECT_EQ(visible_text("two\nlines"), "two lines");
}

TEST(ShownNumber, RoundsForPeopleAndNeverFollowsALocale) {
  EXPECT_EQ(shown_number(0.123456), "0.1235");
  EXPECT_EQ(shown_number(1234567), "1234567");
  EXPECT_EQ(shown_number(1.5e-13), "1.500e-13");
  EXPECT_EQ(shown_number(0), "0");
  EXPECT_EQ(shown_number(std::numeric_limits<double>::infinity()), "inf");
}

}  // namespace
}  // namespace assay::harness
