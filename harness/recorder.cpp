#include "harness/recorder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace assay::harness {

Recorder::Recorder(const ScenarioNeeds& needs, const ScenarioSettings& settings,
                   ScenarioResult& result)
    : needs_(needs), settings_(settings), result_(result) {}

double Recorder::size(std::string_view name) const {
  const auto found = settings_.sizes.find(std::string(name));
  if (found == settings_.sizes.end()) {
    throw InternalError(cat("scenario ", settings_.name, " declares no size ", name));
  }
  return found->second;
}

int64_t Recorder::count(std::string_view name) const {
  const double value = size(name);
  if (value != std::floor(value)) {
    throw ConfigError(
        cat("suite: ", settings_.name, ".sizes.", name, " is ", value, ", must be a whole number"));
  }
  return static_cast<int64_t>(value);
}

const std::vector<std::string>& Recorder::list(std::string_view name) const {
  const auto found = settings_.lists.find(std::string(name));
  if (found == settings_.lists.end()) {
    throw InternalError(cat("scenario ", settings_.name, " declares no list ", name));
  }
  return found->second;
}

const CheckSetting& Recorder::setting(std::string_view check) const {
  const auto found = settings_.checks.find(std::string(check));
  if (found == settings_.checks.end()) {
    throw InternalError(cat("scenario ", settings_.name, " declares no check ", check));
  }
  return found->second;
}

double Recorder::threshold(std::string_view check) const {
  const CheckSetting& found = setting(check);
  if (!found.threshold) throw InternalError(cat("check ", check, " has no threshold"));
  return *found.threshold;
}

void Recorder::add(Verdict verdict, Outcome outcome) {
  if (has_verdict(outcome.check)) {
    throw InternalError(cat("check ", outcome.check, " was reported twice"));
  }
  const CheckSetting& found = setting(outcome.check);
  Check check;
  check.name = std::move(outcome.check);
  check.verdict = verdict;
  check.is_required = found.is_required;
  check.measured = outcome.measured;
  check.measured_text = std::move(outcome.measured_text);
  check.threshold = found.threshold;
  check.unit = std::move(outcome.unit);
  check.reason = std::move(outcome.reason);
  check.evidence = std::move(outcome.evidence);
  result_.checks.push_back(std::move(check));
}

void Recorder::judge(bool is_good, Outcome outcome) {
  add(is_good ? Verdict::kPass : Verdict::kFail, std::move(outcome));
}

void Recorder::at_most(Outcome outcome) {
  if (!outcome.measured) throw InternalError(cat("check ", outcome.check, " measured nothing"));
  const bool is_good = *outcome.measured <= threshold(outcome.check);
  judge(is_good, std::move(outcome));
}

void Recorder::at_least(Outcome outcome) {
  if (!outcome.measured) throw InternalError(cat("check ", outcome.check, " measured nothing"));
  const bool is_good = *outcome.measured >= threshold(outcome.check);
  judge(is_good, std::move(outcome));
}

void Recorder::could_not_run(Outcome outcome) { add(Verdict::kCouldNotRun, std::move(outcome)); }

void Recorder::not_applicable(std::string_view check, const std::string& why) {
  Outcome outcome;
  outcome.check = std::string(check);
  outcome.reason = cat("not applicable: ", why);
  add(Verdict::kCouldNotRun, std::move(outcome));
  result_.checks.back().is_required = false;
}

void Recorder::fact(Fact fact) { result_.facts.push_back(std::move(fact)); }
void Recorder::advise(Advice advice) { result_.advice.push_back(std::move(advice)); }
void Recorder::show(Curve curve) { result_.curves.push_back(std::move(curve)); }

bool Recorder::has_verdict(std::string_view check) const {
  return std::any_of(result_.checks.begin(), result_.checks.end(),
                     [&](const Check& known) { return known.name == check; });
}

void Recorder::close(const std::string& why) {
  for (const std::string& check : needs_.checks) {
    if (has_verdict(check)) continue;
    Outcome outcome;
    outcome.check = check;
    outcome.reason = why;
    could_not_run(std::move(outcome));
  }
}

}  // namespace assay::harness
