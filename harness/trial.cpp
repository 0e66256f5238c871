#include "harness/trial.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "harness/child_process.h"
#include "harness/metrics_watch.h"
#include "platform/programs.h"

namespace assay::harness {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(5);  // 0.1 % of a core, +-5 ms

// A trial is one process on its own: what a surrounding launcher or a test has set must not reach
// it, or it would look for other ranks, resume by itself, or fail on purpose.
const std::vector<std::string>& dropped_variables() {
  static const std::vector<std::string> names = {
      "RANK",           "LOCAL_RANK",  "WORLD_SIZE",      "LOCAL_WORLD_SIZE",
      "GROUP_RANK",     "MASTER_ADDR", "MASTER_PORT",     "ASSAY_FAULTS",
      "TORCHELASTIC_*", "SLURM_*",     "OMPI_*",          "PMI_*",
      "PMIX_*",         "MPI_LOCAL*",  "JSM_NAMESPACE_*", "PET_*"};
  return names;
}

nlohmann::json trial_record(const TrialRequest& request, const TrialResult& result) {
  nlohmann::json json = {{"name", request.name},
                         {"command", request.command},
                         {"environment", request.environment},
                         {"wall_seconds", result.wall_seconds},
                         {"cpu_seconds", result.cpu_seconds},
                         {"peak_rss_bytes", result.peak_rss_bytes},
                         {"last_step", result.last_step},
                         {"is_timed_out", result.is_timed_out},
                         {"is_kill_sent", result.is_kill_sent}};
  json["exit_code"] = result.exit_code ? nlohmann::json(*result.exit_code) : nlohmann::json();
  json["signal"] = result.signal_number ? nlohmann::json(*result.signal_number) : nlohmann::json();
  json["first_step_seconds"] =
      result.first_step_seconds ? nlohmann::json(*result.first_step_seconds) : nlohmann::json();
  return json;
}

std::string sample_lines(const std::vector<ResourceSample>& samples) {
  std::string text;
  for (const ResourceSample& sample : samples) {
    text += nlohmann::json{{"seconds", sample.seconds},
                           {"cpu_seconds", sample.cpu_seconds},
                           {"rss_bytes", sample.rss_bytes},
                           {"step", sample.step}}
                .dump() +
            "\n";
  }
  return text;
}

void write_new_file(const std::string& path, std::string_view text) {
  remove_file(path);
  FileWriter writer(path, "evidence");
  writer.write(text);
  writer.close();
}

// The loop around one child: looks, samples, kills when due.
class TrialLoop {
 public:
  TrialLoop(const TrialRequest& request, Interrupt& interrupt, ChildProcess& child)
      : request_(request),
        interrupt_(interrupt),
        child_(child),
        watch_(join_path(request.run_dir, "metrics.jsonl")),
        start_(monotonic_seconds()) {}

  TrialResult run() {
    while (!child_.poll()) {
      interrupt_.check();
      look();
      std::this_thread::sleep_for(kPollInterval);
    }
    const ChildExit& end = *child_.poll();
    result_.wall_seconds = monotonic_seconds() - start_;
    look_at_steps();
    result_.exit_code = end.exit_code;
    result_.signal_number = end.signal_number;
    result_.cpu_seconds = end.cpu_seconds;
    result_.peak_rss_bytes = end.peak_rss_bytes;
    return result_;
  }

 private:
  void look_at_steps() {
    if (request_.run_dir.empty()) return;
    const int64_t before = result_.last_step;
    result_.last_step = watch_.poll(request_.first_new_step);
    if (result_.last_step != before) last_progress_ = monotonic_seconds() - start_;
    if (result_.last_step >= request_.first_new_step && !result_.first_step_seconds) {
      result_.first_step_seconds = monotonic_seconds() - start_;
    }
  }

  void look() {
    look_at_steps();
    const double now = monotonic_seconds() - start_;
    if (request_.sample_seconds > 0 &&
        now >= request_.sample_seconds * static_cast<double>(result_.samples.size())) {
      const ChildUsage usage = child_.usage();
      result_.samples.push_back({now, usage.cpu_seconds, usage.rss_bytes, result_.last_step});
    }
    const bool is_late = now - last_progress_ > request_.stall_limit_seconds ||
                         (request_.limit_seconds && now > *request_.limit_seconds);
    if (is_late && !result_.is_timed_out) {
      result_.is_timed_out = true;
      child_.signal_group(SIGKILL);
    }
    const bool is_due = (request_.kill_at_step && result_.last_step >= *request_.kill_at_step) ||
                        (request_.kill_after_seconds && now >= *request_.kill_after_seconds);
    if (is_due && !result_.is_kill_sent && !result_.is_timed_out) {
      result_.is_kill_sent = true;
      child_.signal_child(request_.kill_signal);
    }
  }

  const TrialRequest& request_;
  Interrupt& interrupt_;
  ChildProcess& child_;
  MetricsWatch watch_;
  double start_;
  double last_progress_ = 0;
  TrialResult result_;
};

}  // namespace

TrialResult run_trial(const TrialRequest& request, Interrupt& interrupt) {
  create_directories(request.folder);
  ChildRequest child_request;
  child_request.command = request.command;
  child_request.working_directory =
      request.working_directory.empty() ? request.folder : request.working_directory;
  child_request.environment = request.environment;
  child_request.dropped_variables = dropped_variables();
  child_request.log_file = join_path(request.folder, "log.txt");
  ChildProcess child(child_request);
  TrialResult result = TrialLoop(request, interrupt, child).run();
  write_new_file(
      join_path(request.folder, "trial.json"),
      trial_record(request, result).dump(2, ' ', true, nlohmann::json::error_handler_t::replace) +
          "\n");
  if (!result.samples.empty()) {
    write_new_file(join_path(request.folder, "resources.jsonl"), sample_lines(result.samples));
  }
  return result;
}

std::string describe_end(const TrialResult& result) {
  if (result.is_timed_out) {
    return cat("no end after ", duration_text(result.wall_seconds), " and no new step after step ",
               result.last_step, " (then killed)");
  }
  if (result.signal_number) {
    return cat("signal ", *result.signal_number,
               result.is_kill_sent ? " (sent by the harness)" : " (not sent by the harness)");
  }
  return cat("exit code ", result.exit_code.value_or(-1));
}

std::string find_trainer() {
  const platform::TrainerProgram trainer = platform::find_trainer();
  const std::string problem = platform::trainer_problem(trainer);
  if (!problem.empty()) {
    throw CouldNotRunError(
        cat("the trainer cannot be started: ", problem, ". Fix: ", platform::trainer_fix(trainer)));
  }
  // Trials run in folders of their own: a relative ASSAY_TRAIN must keep its meaning.
  return std::filesystem::absolute(trainer.path).string();
}

}  // namespace assay::harness
