#include "harness/accept_command.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "harness/acceptance.h"
#include "harness/command_options.h"
#include "harness/report/escape.h"
#include "harness/report/report_cells.h"
#include "trainer/config/config_io.h"

namespace assay::harness {
namespace {

constexpr std::string_view kUsage = "assay accept [options]";
constexpr std::string_view kSentence =
    "Judges this machine by real training, real kills and real resumes, and writes a report.\n"
    "Exit code 0: pass; 6: a required check failed; 8: no verdict possible; 2: usage.";

constexpr std::array<OptionSpec, 8> kOptions = {{
    {"suite", "NAME", "quick", "Which suite: quick (a few minutes on two cores), standard or full.",
     "What is judged"},
    {"suite-file", "PATH", "none", "A suite file of your own instead of a built-in one.",
     "What is judged"},
    {"scenarios", "A,B", "all of the suite",
     "Only these scenarios; also runs them again in a folder that holds an acceptance.",
     "What is judged"},
    {"config", "PATH", "built-in workloads",
     "Your own training configuration as the workload of storage, smoke, timing and resume.",
     "What is judged"},
    {"output", "DIR", "acceptance-<UTC>", "Folder for the report and its evidence.", "Output"},
    {"lang", "en|zh", "en", "Language of the report.", "Output"},
    {"keep-checkpoints", "", "off", "Keep the weights of judged checkpoints in the evidence.",
     "Output"},
    {"time-budget", "MINUTES", "none", "Stop starting trainer runs after this time.", "Limits"},
}};

std::string absolute_path(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

void load_suite(const CommandWords& words, AcceptanceRequest& request) {
  const std::string file = words.value_or("suite-file", "");
  if (!file.empty() && words.values.count("suite") != 0) {
    throw ConfigError("--suite and --suite-file are both given. Fix: leave one out");
  }
  std::string origin = file;
  if (file.empty()) {
    const std::string name = words.value_or("suite", "quick");
    request.suite_text = std::string(embedded_suite_text(name));
    origin = cat("built-in suite ", name);
  } else {
    try {
      request.suite_text = read_file(file);
    } catch (const FileError& error) {
      throw ConfigError(cat("--suite-file: ", error.what(),
                            ". Fix: name a suite file, or --suite quick|standard|full"));
    }
  }
  request.suite = parse_suite(request.suite_text, origin, needs_of_scenarios());
}

void load_config(const CommandWords& words, AcceptanceRequest& request) {
  const std::string file = words.value_or("config", "");
  if (file.empty()) return;
  request.config_file = absolute_path(file);
  // Refused now with every violation, not by the first trial with a log to read.
  const std::vector<std::string> train_words = {request.config_file};
  config::parse_train_arguments(train_words);
}

std::vector<std::string> scenario_list(const CommandWords& words) {
  std::vector<std::string> names;
  if (words.values.count("scenarios") == 0) return names;
  for (const std::string& part : split(words.value_or("scenarios", ""), ',')) {
    const std::string name = trimmed(part);
    if (name.empty()) {
      throw ConfigError("--scenarios has an empty name. Fix: names with commas, no spaces");
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::optional<double> time_budget(const CommandWords& words) {
  if (words.values.count("time-budget") == 0) return std::nullopt;
  const std::string text = words.value_or("time-budget", "");
  const std::optional<double> minutes = parse_double(text);
  if (!minutes || !std::isfinite(*minutes) || *minutes <= 0) {
    throw ConfigError(cat("--time-budget is ", assay::quoted(text),
                          ", must be a number of minutes > 0, e.g. --time-budget 9"));
  }
  return *minutes * 60;
}

std::string shown_command(std::span<const std::string> words) {
  std::string command = "assay accept";
  for (const std::string& word : words) command += cat(" ", word);
  return command;
}

void print_summary(const Report& report, const std::string& output, Language language) {
  const auto word = [&](Verdict verdict) {
    return report_text(language, cat("verdict.", verdict_name(verdict)));
  };
  std::string text = cat(report_text(language, "heading.verdict"), ": ", word(report.verdict), " (",
                         report.device, ")\n");
  for (const ScenarioResult& scenario : report.scenarios) {
    text += cat("  ", scenario.name, ": ", word(scenario.verdict));
    text += scenario.reason.empty() ? "\n" : cat(": ", scenario.reason, "\n");
    for (const Check& check : scenario.checks) {
      if (check.verdict != Verdict::kFail) continue;
      std::string measured = measured_cell(check);
      if (check.threshold) measured += cat(" / ", threshold_cell(check));
      text += cat("    ", verdict_cell(check, language), ": ", check_title(check, language), ": ",
                  measured, measured.empty() ? "" : ": ", check.reason, "\n");
    }
  }
  for (const ScenarioResult& scenario : report.scenarios) {
    for (const Advice& advice : scenario.advice) {
      text += cat("  ", advice.what, ": ", advice.evidence, " -> ", advice.next_step, "\n");
    }
  }
  text += cat("report: ", join_path(output, "report.html"), "\n");
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) std::fputs(cat(visible_text(line), "\n").c_str(), stdout);
  }
}

}  // namespace

int run_accept_command(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--try-advice" || word == "--try_advice") {
      throw ConfigError(
          cat(word,
              " is not in this release (0.1). Fix: leave it out; the report names the "
              "next thing to try"));
    }
  }
  const CommandWords parsed = parse_command_words(kOptions, words, 0);
  if (parsed.is_help) {
    std::fputs(command_help(kUsage, kSentence, kOptions).c_str(), stdout);
    std::fputs(cat("\nScenarios: ", join(scenario_keys(), ", "), "\n").c_str(), stdout);
    return 0;
  }
  AcceptanceRequest request;
  request.language = parse_language(parsed.value_or("lang", "en"));
  load_suite(parsed, request);
  load_config(parsed, request);
  request.named_scenarios = scenario_list(parsed);
  request.time_budget_seconds = time_budget(parsed);
  request.keeps_checkpoints = parsed.is_on("keep-checkpoints");
  request.output = without_trailing_slash(
      absolute_path(parsed.value_or("output", cat("acceptance-", utc_compact()))));
  request.command = shown_command(words);
  find_trainer();  // without one there is nothing to judge, and no folder to make
  const AcceptanceResult result = run_acceptance(request);
  print_summary(result.report, request.output, request.language);
  return exit_code_of_acceptance(result);
}

}  // namespace assay::harness
