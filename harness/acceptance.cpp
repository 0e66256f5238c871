#include "harness/acceptance.h"

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/version.h"

namespace assay::harness {
namespace {

constexpr double kReportReserveSeconds = 2;  // of a time budget, for writing and hashing the folder

MemoryRoom memory_room(const platform::Environment& environment) {
  if (environment.is_gpu_present && !environment.gpus.empty()) {
    return {static_cast<uint64_t>(environment.gpus.front().memory_bytes), true};
  }
  const uint64_t limit = environment.memory.cgroup_limit_bytes;
  const uint64_t total = environment.memory.total_bytes;
  return {limit > 0 ? std::min(limit, total) : total, false};
}

// The names to run, in contract.md's order. Throws ConfigError for a name that does not exist.
std::vector<const Scenario*> choose_scenarios(const AcceptanceRequest& request) {
  std::vector<std::string> problems;
  const std::vector<std::string> keys = scenario_keys();
  for (const std::string& name : request.named_scenarios) {
    const Scenario* scenario = find_scenario_by_key(name);
    if (scenario == nullptr) {
      const auto near = nearest_spelling(name, keys);
      problems.push_back(cat("no scenario is named ", assay::quoted(name),
                             near ? cat("; did you mean ", assay::quoted(*near), "?")
                                  : cat("; known are ", join(keys, ", "))));
    } else if (scenario->is_in_this_release && find_settings(request.suite, name) == nullptr) {
      problems.push_back(cat("suite ", request.suite.name, " has no settings for scenario ", name));
    }
  }
  if (!problems.empty()) throw ConfigError(join(problems, "; "));
  std::vector<const Scenario*> chosen;
  for (const Scenario& scenario : all_scenarios()) {
    const bool is_named = std::find(request.named_scenarios.begin(), request.named_scenarios.end(),
                                    scenario.key) != request.named_scenarios.end();
    const bool is_in_suite = find_settings(request.suite, scenario.key) != nullptr;
    if (is_named || (request.named_scenarios.empty() && is_in_suite)) chosen.push_back(&scenario);
  }
  return chosen;
}

void refuse_other_suite(const AcceptanceRequest& request, const Report& previous,
                        const std::string& config_digest) {
  if (previous.suite_digest != request.suite.digest) {
    throw ConfigError(cat("--output ", assay::quoted(request.output), " was made with suite ",
                          previous.suite, " (", previous.suite_digest.substr(0, 12), "), now ",
                          request.suite.name, " (", request.suite.digest.substr(0, 12),
                          ") is asked for; one report has one suite. Fix: the same --suite, or "
                          "another --output"));
  }
  if (previous.config_digest != config_digest) {
    throw ConfigError(cat("--output ", assay::quoted(request.output),
                          " was made with another --config (", previous.config_file,
                          "). Fix: the same one, or another --output"));
  }
}

void put_result(std::vector<ScenarioResult>& results, ScenarioResult result) {
  std::erase_if(results, [&](const ScenarioResult& old) { return old.name == result.name; });
  results.push_back(std::move(result));
  const std::vector<std::string> order = scenario_keys();
  const auto place = [&](const ScenarioResult& one) {
    return std::find(order.begin(), order.end(), one.name) - order.begin();
  };
  std::stable_sort(results.begin(), results.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

// One acceptance from the first to the last scenario.
class Acceptance {
 public:
  explicit Acceptance(const AcceptanceRequest& request)
      : request_(request),
        start_(monotonic_seconds()),
        chosen_(choose_scenarios(request)),
        folder_(request.output, !request.named_scenarios.empty()),
        environment_(platform::record_environment({request.output})),
        estimate_(expected_seconds()) {}

  AcceptanceResult run() {
    begin_report();
    ContextConfig config;
    config.output = request_.output;
    config.config_file = request_.config_file;
    config.keeps_checkpoints = request_.keeps_checkpoints;
    if (request_.time_budget_seconds) {
      config.deadline_seconds = start_ + *request_.time_budget_seconds - kReportReserveSeconds;
    }
    ScenarioContext context(request_.suite, environment_, interrupt_, config);
    for (size_t i = 0; i < chosen_.size(); ++i) run_one(i, context);
    add_later_scenarios(context);
    finish_report();
    return {report_, signal_number_};
  }

 private:
  std::vector<double> expected_seconds() const {
    std::vector<double> expected;
    for (const Scenario* scenario : chosen_) {
      const ScenarioSettings* settings = find_settings(request_.suite, scenario->key);
      expected.push_back(settings == nullptr ? 0 : settings->expected_seconds);
    }
    return expected;
  }

  void begin_report() {
    const std::string config_digest =
        request_.config_file.empty() ? "" : sha256_file_hex(request_.config_file);
    if (folder_.previous()) {
      refuse_other_suite(request_, *folder_.previous(), config_digest);
      report_.scenarios = folder_.previous()->scenarios;
    }
    report_.stop_reason = "still going on";
    report_.suite = request_.suite.name;
    report_.suite_digest = request_.suite.digest;
    report_.suite_description = request_.suite.description;
    report_.config_file = request_.config_file;
    report_.config_digest = config_digest;
    report_.started_utc = utc_timestamp();
    report_.version = cat(version_string(), " (commit ", git_commit(), ", ", build_compiler(), ")");
    report_.command = request_.command;
    report_.device = describe_device(environment_);
    report_.platform_json = platform::to_json(environment_);
    folder_.add_evidence("platform.json", report_.platform_json);
    folder_.add_evidence("suite.json", request_.suite_text);
    if (!request_.config_file.empty()) {
      folder_.add_evidence("user-config.json", read_file(request_.config_file));
    }
    folder_.write_progress(report_);
  }

  void show_progress(size_t index, const ScenarioContext& context, double scenario_start,
                     const std::string& what) {
    const double here = monotonic_seconds() - scenario_start;
    progress_.update(
        cat("[", index + 1, "/", chosen_.size(), "] ", chosen_[index]->key, ": ", what, ", ",
            duration_text(monotonic_seconds() - start_), " gone, about ",
            duration_text(estimate_.seconds_left(index, here, context.done_fraction())), " left"));
  }

  void run_one(size_t index, ScenarioContext& context) {
    const Scenario& scenario = *chosen_[index];
    const std::string name(scenario.key);
    const double start = monotonic_seconds();
    const ScenarioSettings* settings = find_settings(request_.suite, name);
    ScenarioResult result;
    result.name = name;
    if (signal_number_ != 0) {
      result.reason = cat("not reached: interrupted by signal ", signal_number_);
    } else if (settings == nullptr) {
      result.reason = scenario.reason_not_to_run(context).value_or("no settings in the suite");
    } else {
      context.begin_scenario();
      context.on_progress = [&](const std::string& trial) {
        show_progress(index, context, start, trial);
      };
      folder_.clear_scenario(name);
      show_progress(index, context, start, std::string(scenario.description));
      result = run_scenario(scenario, *settings, context, &signal_number_);
    }
    result.is_required =
        !request_.named_scenarios.empty() || (settings != nullptr && settings->is_required);
    result.seconds = monotonic_seconds() - start;
    result.finished_utc = utc_timestamp();
    if (settings != nullptr) estimate_.finished(index, result.seconds);
    progress_.line(
        cat("[", index + 1, "/", chosen_.size(), "] ", name, ": ",
            report_text(Language::kEnglish, cat("verdict.", verdict_name(result.verdict))), " (",
            duration_text(result.seconds), ")", result.reason.empty() ? "" : ": ", result.reason));
    put_result(report_.scenarios, std::move(result));
    folder_.write_progress(report_);
  }

  // What the contract names and this release does not have is said by name, and decides nothing.
  void add_later_scenarios(const ScenarioContext& context) {
    for (const Scenario& scenario : all_scenarios()) {
      const bool is_there =
          std::any_of(report_.scenarios.begin(), report_.scenarios.end(),
                      [&](const ScenarioResult& result) { return result.name == scenario.key; });
      if (scenario.is_in_this_release || is_there) continue;
      ScenarioResult result;
      result.name = std::string(scenario.key);
      result.reason = scenario.reason_not_to_run(context).value_or("not in this release");
      result.is_required = false;
      result.finished_utc = utc_timestamp();
      put_result(report_.scenarios, std::move(result));
    }
  }

  void finish_report() {
    report_.verdict = overall_verdict(report_.scenarios);
    report_.is_finished = signal_number_ == 0;
    report_.stop_reason = report_.is_finished ? "" : cat("interrupted by signal ", signal_number_);
    report_.finished_utc = utc_timestamp();
    report_.seconds = monotonic_seconds() - start_;
    report_.scorecard = make_scorecard(report_.scenarios, memory_room(environment_));
    folder_.finish(report_, request_.language, request_.keeps_checkpoints);
  }

  const AcceptanceRequest& request_;
  double start_;
  std::vector<const Scenario*> chosen_;
  AcceptanceFolder folder_;
  Interrupt interrupt_;
  platform::Environment environment_;
  TimeEstimate estimate_;
  ProgressLine progress_;
  Report report_;
  int signal_number_ = 0;
};

// The trainer left something that cannot be read: that is a finding about the trainer.
void add_unreadable(const std::string& problem, ScenarioResult& result) {
  Check check;
  check.name = cat(result.name, ".evidence_readable");
  check.verdict = Verdict::kFail;
  check.reason = problem;
  result.checks.push_back(check);
  result.reason = problem;
}

}  // namespace

ScenarioResult run_scenario(const Scenario& scenario, const ScenarioSettings& settings,
                            ScenarioContext& context, int* signal_number) {
  ScenarioResult result;
  result.name = std::string(scenario.key);
  Recorder recorder(scenario.needs, settings, result);
  if (const auto reason = scenario.reason_not_to_run(context)) {
    result.reason = *reason;
    recorder.close(*reason);
    return result;
  }
  try {
    scenario.run(context, recorder);
  } catch (const InterruptedError& error) {
    *signal_number = error.signal_number();
    result.reason = error.what();
  } catch (const CouldNotRunError& error) {
    result.reason = error.what();
  } catch (const DataError& error) {
    add_unreadable(error.what(), result);
  } catch (const CheckpointError& error) {
    add_unreadable(error.what(), result);
  } catch (const FileError& error) {
    result.reason = cat("the harness could not go on: ", error.what());
  }
  recorder.close(result.reason.empty() ? "the scenario ended before this check" : result.reason);
  result.verdict = verdict_of_checks(result.checks);
  return result;
}

std::string describe_device(const platform::Environment& environment) {
  if (!environment.is_gpu_present) {
    return cat("CPU only: ", environment.cpu.model, ", ", environment.cpu.available_cpus,
               environment.cpu.available_cpus == 1 ? " CPU" : " CPUs");
  }
  if (environment.gpus.empty()) {
    return cat("a GPU is present but not usable: ", environment.nvml_problem);
  }
  std::map<std::string, int64_t> counts;
  for (const platform::GpuFacts& gpu : environment.gpus) ++counts[gpu.name];
  std::string text;
  for (const auto& [name, count] : counts) {
    text += cat(text.empty() ? "" : ", ", count, " x ", name);
  }
  return text;
}

AcceptanceResult run_acceptance(const AcceptanceRequest& request) {
  return Acceptance(request).run();
}

int exit_code_of_acceptance(const AcceptanceResult& result) {
  constexpr int kSignalBase = 128;
  if (result.signal_number != 0) return kSignalBase + result.signal_number;
  switch (result.report.verdict) {
    case Verdict::kPass:
      return static_cast<int>(ExitCode::kOk);
    case Verdict::kFail:
      return static_cast<int>(ExitCode::kCheckFailed);
    case Verdict::kCouldNotRun:
      break;
  }
  return static_cast<int>(ExitCode::kCouldNotRun);
}

}  // namespace assay::harness
