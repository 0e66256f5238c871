#include "harness/scenario_context.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "harness/run_folder.h"
#include "trainer/config/config_io.h"

namespace assay::harness {

ScenarioContext::ScenarioContext(const Suite& suite, const platform::Environment& environment,
                                 Interrupt& interrupt, ContextConfig config)
    : suite_(suite), environment_(environment), interrupt_(interrupt), config_(std::move(config)) {}

std::vector<Workload> ScenarioContext::workloads(const std::vector<std::string>& names) const {
  if (has_user_config()) {
    Workload workload;
    workload.name = "config";
    workload.options = {config_.config_file};
    // Trials are shorter than the run that the file describes; its schedule must not shrink with
    // them.
    const config::RunConfig user = config::parse_train_arguments(workload.options).config;
    workload.drops_last = user.data.drop_last;
    const std::optional<int64_t> horizon =
        user.schedule.total_steps ? user.schedule.total_steps : user.max_steps;
    const bool is_decaying = user.schedule.type == "linear" || user.schedule.type == "cosine";
    if (is_decaying && horizon) workload.options.push_back(cat("schedule.total_steps=", *horizon));
    return {workload};
  }
  std::vector<Workload> result;
  for (const std::string& name : names) result.push_back(find_workload(suite_, name));
  return result;
}

std::string ScenarioContext::evidence_folder(std::string_view scenario,
                                             std::string_view trial) const {
  return join_path(join_path(join_path(config_.output, "evidence"), scenario), trial);
}

std::string ScenarioContext::relative(const std::string& path) const {
  const std::string prefix = config_.output + "/";
  return path.starts_with(prefix) ? path.substr(prefix.size()) : path;
}

TrialRequest ScenarioContext::train_words(const std::string& folder,
                                          const std::vector<std::string>& words) const {
  TrialRequest request;
  request.name = relative(folder);
  request.folder = folder;
  request.command = {find_trainer(), "train"};
  request.command.insert(request.command.end(), words.begin(), words.end());
  // Relative paths in the user's file mean what they mean for `assay train`.
  if (has_user_config()) request.working_directory = std::filesystem::current_path().string();
  request.stall_limit_seconds =
      has_user_config() ? suite_.config_stall_limit_seconds : suite_.stall_limit_seconds;
  return request;
}

TrialRequest ScenarioContext::train(const std::string& folder, const Workload& workload,
                                    const std::vector<std::string>& more) const {
  std::vector<std::string> words = workload.options;
  // A GPU that is present must be used: the run fails where it cannot, it never falls to the CPU.
  // --fp64 is for proofs on the CPU.
  const bool is_cpu_only = std::find(more.begin(), more.end(), "--fp64") != more.end();
  if (environment_.is_gpu_present && !has_user_config()) {
    words.insert(words.end(), {"--device", is_cpu_only ? "cpu" : "cuda"});
  }
  const std::string run_dir = join_path(folder, "run");
  words.insert(words.end(), {"--output_dir", run_dir});
  words.insert(words.end(), more.begin(), more.end());
  TrialRequest request = train_words(folder, words);
  request.run_dir = run_dir;
  return request;
}

TrialResult ScenarioContext::run(TrialRequest request) {
  interrupt_.check();
  if (config_.deadline_seconds) {
    const double left = *config_.deadline_seconds - monotonic_seconds();
    if (left <= 0) {
      throw TimeBudgetError(cat("the time budget was used up before ", request.name,
                                ". Fix: a larger --time-budget, or the missing scenarios with "
                                "--scenarios into the same --output"));
    }
    request.limit_seconds = left;
  }
  TrialResult result = run_trial(request, interrupt_);
  if (config_.deadline_seconds && result.is_timed_out &&
      monotonic_seconds() >= *config_.deadline_seconds) {
    throw TimeBudgetError(
        cat("the time budget was used up during ", request.name, ". Fix: a larger --time-budget"));
  }
  ++done_trials_;
  if (on_progress) on_progress(request.name);
  return result;
}

double ScenarioContext::done_fraction() const {
  if (expected_trials_ <= 0) return 0;
  return std::min(1.0, static_cast<double>(done_trials_) / static_cast<double>(expected_trials_));
}

void ScenarioContext::begin_scenario() {
  expected_trials_ = 0;
  done_trials_ = 0;
}

void ScenarioContext::drop_weights(const std::string& run_dir) const {
  if (!config_.keeps_checkpoints) harness::drop_weights(run_dir);
}

}  // namespace assay::harness
