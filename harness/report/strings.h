// Every fixed text of the reports in English and Chinese. What scenarios measured and why (reasons)
// is English in both.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace assay::harness {

enum class Language { kEnglish, kChinese };

// "en" or "zh"; throws ConfigError for anything else.
Language parse_language(std::string_view name);
std::string_view language_tag(Language language);  // "en", "zh-CN"

// The text of a key: a heading ("heading.checks"), a verdict ("verdict.pass"), a scenario
// ("scenario.smoke"), a check ("smoke.steps_once"), a score ("score.step_time"), a plot. Throws
// InternalError for an unknown key.
std::string_view report_text(Language language, std::string_view key);
bool has_report_text(std::string_view key);

namespace strings_detail {
struct Entry {
  std::string_view key;
  std::string_view english;
  std::string_view chinese;
};
std::span<const Entry> heading_entries();
std::span<const Entry> check_entries();
}  // namespace strings_detail

}  // namespace assay::harness
