#include "harness/report/report_cells.h"

#include "base/text.h"
#include "harness/report/escape.h"

namespace assay::harness {
namespace {

constexpr std::string_view kFraction = "fraction";

// Fractions are for programs; people read per cent.
std::string with_unit(double value, const std::string& unit) {
  if (unit.starts_with(kFraction)) {
    return cat(shown_number(value * 100), " %", unit.substr(kFraction.size()));
  }
  if (unit == "bytes" && value >= 0) return bytes_text(static_cast<uint64_t>(value));
  return unit.empty() ? shown_number(value) : cat(shown_number(value), " ", unit);
}

}  // namespace

std::string measured_cell(const Check& check) {
  std::string cell = check.measured ? with_unit(*check.measured, check.unit) : "";
  if (!check.measured_text.empty()) {
    cell += cell.empty() ? check.measured_text : cat(" (", check.measured_text, ")");
  }
  return cell;
}

std::string threshold_cell(const Check& check) {
  if (!check.threshold) return "";
  const bool is_fraction = check.unit.starts_with(kFraction);
  return is_fraction ? cat(shown_number(*check.threshold * 100), " %")
                     : shown_number(*check.threshold);
}

std::string kind_cell(const Check& check, Language language) {
  return std::string(report_text(language, check.is_required ? "word.required" : "word.advisory"));
}

std::string verdict_cell(const Check& check, Language language) {
  if (check.verdict == Verdict::kFail && !check.is_required) {
    return std::string(report_text(language, "word.finding"));
  }
  return std::string(report_text(language, cat("verdict.", verdict_name(check.verdict))));
}

std::string score_cell(const ScoreLine& line, Language language) {
  if (!line.text.empty() && !line.value) return line.text;
  if (!line.value) return std::string(report_text(language, "word.no_measurement"));
  const std::string value = with_unit(*line.value, line.unit);
  return line.text.empty() || line.text == value ? value : cat(value, " (", line.text, ")");
}

std::string fact_cell(const Fact& fact) {
  std::string cell = fact.value ? with_unit(*fact.value, fact.unit) : "";
  if (!fact.text.empty()) cell += cell.empty() ? fact.text : cat(" (", fact.text, ")");
  return cell;
}

std::string check_title(const Check& check, Language language) {
  if (has_report_text(check.name)) return std::string(report_text(language, check.name));
  if (check.name.ends_with(".evidence_readable")) {
    return std::string(report_text(language, "check.evidence_readable"));
  }
  return check.name;
}

std::string scenario_title(std::string_view scenario, Language language) {
  const std::string key = cat("scenario.", scenario);
  return has_report_text(key) ? std::string(report_text(language, key)) : std::string(scenario);
}

}  // namespace assay::harness
