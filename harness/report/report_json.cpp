// report.json, written and read back. Keys are part of the format (contract.md).
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "harness/report/report.h"

namespace assay::harness {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "assay-acceptance";

Json number_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

// A number where there is one; words where there are only words; null for neither.
Json measured_value(const Check& check) {
  if (check.measured && std::isfinite(*check.measured)) return *check.measured;
  if (check.measured) return number_text(*check.measured);
  return check.measured_text.empty() ? Json() : Json(check.measured_text);
}

Json to_json(const Check& check) {
  return {{"name", check.name},
          {"verdict", verdict_name(check.verdict)},
          {"required", check.is_required},
          {"measured", measured_value(check)},
          {"measured_text", check.measured_text},
          {"threshold", number_or_null(check.threshold)},
          {"unit", check.unit},
          {"reason", check.reason},
          {"evidence", check.evidence}};
}

Json to_json(const Advice& advice) {
  return {{"what", advice.what}, {"evidence", advice.evidence}, {"next_step", advice.next_step}};
}

Json to_json(const ScenarioResult& scenario) {
  Json json = {{"name", scenario.name},
               {"verdict", verdict_name(scenario.verdict)},
               {"required", scenario.is_required},
               {"reason", scenario.reason},
               {"finished_utc", scenario.finished_utc},
               {"seconds", scenario.seconds},
               {"checks", Json::array()},
               {"facts", Json::array()},
               {"diagnosis", Json::array()},
               {"curves", Json::array()}};
  for (const Check& check : scenario.checks) json["checks"].push_back(to_json(check));
  for (const Fact& fact : scenario.facts) {
    json["facts"].push_back({{"name", fact.name},
                             {"value", number_or_null(fact.value)},
                             {"text", fact.text},
                             {"unit", fact.unit},
                             {"note", fact.note}});
  }
  for (const Advice& advice : scenario.advice) json["diagnosis"].push_back(to_json(advice));
  for (const Curve& curve : scenario.curves) {
    json["curves"].push_back({{"plot", curve.plot},
                              {"label", curve.label},
                              {"path", curve.path},
                              {"mark_step", curve.mark_step},
                              {"mark_label", curve.mark_label}});
  }
  return json;
}

Check check_from(const Json& json) {
  Check check;
  check.name = json.at("name").get<std::string>();
  check.verdict =
      verdict_from_name(json.at("verdict").get<std::string>()).value_or(Verdict::kCouldNotRun);
  check.is_required = json.at("required").get<bool>();
  const Json& measured = json.at("measured");
  check.measured_text = json.at("measured_text").get<std::string>();
  if (measured.is_number()) check.measured = measured.get<double>();
  if (measured.is_string() && measured.get<std::string>() != check.measured_text) {
    check.measured = parse_hex_float(measured.get<std::string>());  // nan, inf, -inf
  }
  if (json.at("threshold").is_number()) check.threshold = json.at("threshold").get<double>();
  check.unit = json.at("unit").get<std::string>();
  check.reason = json.at("reason").get<std::string>();
  check.evidence = json.at("evidence").get<std::vector<std::string>>();
  return check;
}

ScenarioResult scenario_from(const Json& json) {
  ScenarioResult scenario;
  scenario.name = json.at("name").get<std::string>();
  scenario.verdict =
      verdict_from_name(json.at("verdict").get<std::string>()).value_or(Verdict::kCouldNotRun);
  scenario.is_required = json.at("required").get<bool>();
  scenario.reason = json.at("reason").get<std::string>();
  scenario.finished_utc = json.at("finished_utc").get<std::string>();
  scenario.seconds = json.at("seconds").get<double>();
  for (const Json& check : json.at("checks")) scenario.checks.push_back(check_from(check));
  for (const Json& item : json.at("facts")) {
    Fact fact;
    fact.name = item.at("name").get<std::string>();
    if (item.at("value").is_number()) fact.value = item.at("value").get<double>();
    fact.text = item.at("text").get<std::string>();
    fact.unit = item.at("unit").get<std::string>();
    fact.note = item.at("note").get<std::string>();
    scenario.facts.push_back(fact);
  }
  for (const Json& item : json.at("diagnosis")) {
    scenario.advice.push_back({item.at("what").get<std::string>(),
                               item.at("evidence").get<std::string>(),
                               item.at("next_step").get<std::string>()});
  }
  for (const Json& item : json.at("curves")) {
    scenario.curves.push_back(
        {item.at("plot").get<std::string>(), item.at("label").get<std::string>(),
         item.at("path").get<std::string>(), item.at("mark_step").get<int64_t>(),
         item.at("mark_label").get<std::string>()});
  }
  return scenario;
}

Json scorecard_json(const std::vector<ScoreLine>& lines) {
  Json json = Json::object();
  for (const ScoreLine& line : lines) {
    json[line.key] = {{"value", number_or_null(line.value)},
                      {"text", line.text},
                      {"unit", line.unit},
                      {"note", line.note}};
  }
  return json;
}

std::vector<ScoreLine> scorecard_from(const Json& json) {
  std::vector<ScoreLine> lines;
  for (const auto& [key, item] : json.items()) {
    ScoreLine line;
    line.key = key;
    if (item.at("value").is_number()) line.value = item.at("value").get<double>();
    line.text = item.at("text").get<std::string>();
    line.unit = item.at("unit").get<std::string>();
    line.note = item.at("note").get<std::string>();
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string report_to_json(const Report& report) {
  Json json = {{"format", kFormat},
               {"schema_version", kReportSchemaVersion},
               {"verdict", verdict_name(report.verdict)},
               {"finished", report.is_finished},
               {"stop_reason", report.stop_reason},
               {"suite", report.suite},
               {"suite_digest", report.suite_digest},
               {"suite_description", report.suite_description},
               {"config_file", report.config_file},
               {"config_digest", report.config_digest},
               {"started_utc", report.started_utc},
               {"finished_utc", report.finished_utc},
               {"seconds", report.seconds},
               {"version", report.version},
               {"command", report.command},
               {"device", report.device},
               {"platform", Json::parse(report.platform_json)},
               {"scenarios", Json::array()},
               {"scorecard", scorecard_json(report.scorecard)},
               {"diagnosis", Json::array()}};
  for (const ScenarioResult& scenario : report.scenarios) {
    json["scenarios"].push_back(to_json(scenario));
    for (const Advice& advice : scenario.advice) json["diagnosis"].push_back(to_json(advice));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Report report_from_json(std::string_view text, const std::string& origin) {
  Json json;
  try {
    json = Json::parse(text);
    if (json.at("format") != kFormat) throw DataError(cat(origin, " is not of an acceptance"));
    const auto version = json.at("schema_version").get<int64_t>();
    if (version != kReportSchemaVersion) {
      throw DataError(cat(origin, " has schema_version ", version, ", this program reads ",
                          kReportSchemaVersion, ". Fix: use another --output"));
    }
    Report report;
    report.verdict =
        verdict_from_name(json.at("verdict").get<std::string>()).value_or(Verdict::kCouldNotRun);
    report.is_finished = json.at("finished").get<bool>();
    report.stop_reason = json.at("stop_reason").get<std::string>();
    report.suite = json.at("suite").get<std::string>();
    report.suite_digest = json.at("suite_digest").get<std::string>();
    report.suite_description = json.at("suite_description").get<std::string>();
    report.config_file = json.at("config_file").get<std::string>();
    report.config_digest = json.at("config_digest").get<std::string>();
    report.started_utc = json.at("started_utc").get<std::string>();
    report.finished_utc = json.at("finished_utc").get<std::string>();
    report.seconds = json.at("seconds").get<double>();
    report.version = json.at("version").get<std::string>();
    report.command = json.at("command").get<std::string>();
    report.device = json.at("device").get<std::string>();
    report.platform_json = json.at("platform").dump();
    for (const Json& item : json.at("scenarios")) report.scenarios.push_back(scenario_from(item));
    report.scorecard = scorecard_from(json.at("scorecard"));
    return report;
  } catch (const Json::exception& error) {
    throw DataError(
        cat(origin, " cannot be read as a report: ", error.what(), ". Fix: use another --output"));
  }
}

}  // namespace assay::harness
