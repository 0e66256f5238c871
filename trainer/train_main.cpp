// The trainer program: `assay-train train|estimate ...`, started by `assay`, by launchers and by
// the harness.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "trainer/config/config_io.h"
#include "trainer/dry_run.h"
#include "trainer/estimate/estimate_command.h"
#include "trainer/estimate/estimate_options.h"
#include "trainer/launch/rank_env.h"
#include "trainer/run/stop_signal.h"
#include "trainer/train_command.h"

namespace {

// What was asked for on standard output must have arrived.
int print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return 0;
  throw assay::CouldNotRunError(
      "cannot write standard output. Fix: send it to a place that takes it");
}

std::string dry_run_report(const assay::estimate::EstimateOptions& options) {
  const assay::trainer::DryRun run = assay::trainer::dry_run(
      {.config = assay::estimate::parse_planned_run(options.train_words, nullptr),
       .rank = *options.dry_run_rank,
       .world_size = options.worlds.front()});
  return options.is_json ? assay::trainer::dry_run_json(run) : assay::trainer::dry_run_text(run);
}

int dispatch(const std::vector<std::string>& command, const assay::launch::RankEnv& rank_env) {
  const std::vector<std::string> words(command.begin() + 1, command.end());
  if (!words.empty() && words.front() == "--version") {
    return print(assay::trainer::trainer_version_text());
  }
  if (!words.empty() && words.front() == "estimate") {
    const std::vector<std::string> own(words.begin() + 1, words.end());
    const assay::estimate::EstimateOptions options = assay::estimate::parse_estimate_options(own);
    if (options.dry_run_rank && !options.is_help) return print(dry_run_report(options));
    const assay::estimate::CommandOutput output = assay::estimate::run_estimate_command(own);
    print(output.text);
    return output.code;
  }
  if (words.empty() || words.front() != "train") {
    throw assay::ConfigError(assay::cat(
        "usage: assay-train train|estimate [CONFIG.json] [options] [key=value ...]; got ",
        words.empty() ? "nothing" : assay::quoted(words.front())));
  }
  const std::vector<std::string> train_words(words.begin() + 1, words.end());
  const assay::config::ParsedArguments peeked = assay::config::peek_train_arguments(train_words);
  if (peeked.is_help || peeked.is_print_config) {
    const std::string text = peeked.is_help
                                 ? assay::config::train_help()
                                 : assay::config::config_to_json(
                                       assay::config::parse_train_arguments(train_words).config);
    return print(text);
  }
  assay::Logger log({.level = assay::log_level_from_environment(),
                     .rank = static_cast<int>(rank_env.rank),
                     .is_terminal_quiet = rank_env.rank != 0,
                     .file = ""});
  return assay::trainer::run_train_command(train_words, command, rank_env, log);
}

}  // namespace

int main(int argc, char** argv) {
  std::string error_file;
  assay::ensure_standard_streams();
  try {
    assay::run::install_stop_signals();
    assay::arm_faults_from_environment();
    const assay::launch::RankEnv rank_env =
        assay::launch::resolve_rank_env([](const char* name) { return std::getenv(name); });
    error_file = rank_env.error_file;
    return dispatch({argv, argv + argc}, rank_env);
  } catch (const std::exception& error) {
    const std::string message = assay::describe_exception(error);
    std::fprintf(stderr, "assay: %s\n", message.c_str());
    assay::launch::write_error_file(error_file, message);
    return static_cast<int>(assay::exit_code_of(error));
  }
}
