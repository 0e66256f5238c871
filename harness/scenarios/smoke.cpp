// smoke (mission B2): the two command lines of the field's guides, and proof that reading, forward,
// backward, update and save really happened.
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "checkpoints/reader.h"
#include "harness/run_folder.h"
#include "harness/scenarios/scenario.h"
#include "trainer/metrics/step_record.h"

namespace assay::harness {
namespace {

const std::string kExitCodes = "smoke.exit_codes";
const std::string kStepsOnce = "smoke.steps_once";
const std::string kRead = "smoke.data_read";
const std::string kForward = "smoke.forward";
const std::string kBackward = "smoke.backward";
const std::string kUpdate = "smoke.weights_changed";
const std::string kSave = "smoke.checkpoints_verify";
const std::string kResult = "smoke.result";

// Fixed by the guides' lines (contract.md), not sizes of a suite.
constexpr int64_t kFirstTarget = 30;
constexpr int64_t kSaveEvery = 15;
constexpr int64_t kSecondTarget = 35;
const std::string kOutput = "checkpoints/smoke";

struct SmokeRun {
  std::string run_dir;
  std::string kept_lines;  // metrics of steps 1..15 as the first line left them
  std::vector<std::string> evidence;
  std::vector<metrics::StepRecord> steps;
};

std::string lines_before_resume(const std::string& run_dir) {
  const std::string file = join_path(run_dir, "metrics.jsonl");
  return path_exists(file) ? metrics::split_log_at_step(read_file(file), kSaveEvery).kept : "";
}

bool run_both_lines(ScenarioContext& context, Recorder& recorder, SmokeRun& run) {
  const std::string folder = context.evidence_folder("smoke", "lines");
  run.run_dir = join_path(folder, kOutput);
  // The guides' lines as written; with a configuration of the user's, from the caller's folder.
  const std::string output = context.has_user_config() ? run.run_dir : kOutput;
  std::vector<std::string> first = {"--max_steps",  cat(kFirstTarget), "--batch_size", "1",
                                    "--save_steps", cat(kSaveEvery),   "--output_dir", output};
  const Workload workload = context.has_user_config() ? context.workloads({}).front() : Workload{};
  first.insert(first.begin(), workload.options.begin(), workload.options.end());
  // A GPU that is present must be used, and a retention of the user's must not take checkpoint-15.
  if (context.has_user_config()) {
    first.insert(first.end(), {"--save_total_limit", "0"});
  } else if (context.environment().is_gpu_present) {
    first.insert(first.end(), {"--device", "cuda"});
  }
  const std::vector<std::string> second = {
      "--resume_from_checkpoint", join_path(output, checkpoints::checkpoint_name(kSaveEvery)),
      "--max_steps", cat(kSecondTarget)};
  std::string ends;
  bool is_good = true;
  int number = 0;
  for (const auto& words : {first, second}) {
    const std::string log_folder = context.evidence_folder("smoke", cat("line_", ++number));
    TrialRequest request = context.train_words(log_folder, words);
    create_directories(folder);
    if (!context.has_user_config()) request.working_directory = folder;
    request.run_dir = run.run_dir;
    request.first_new_step = number == 1 ? 1 : kSaveEvery + 1;
    const TrialResult result = context.run(request);
    ends += cat(ends.empty() ? "" : ", then ", describe_end(result));
    is_good = is_good && result.is_exit(0);
    run.evidence.push_back(context.relative(join_path(log_folder, "log.txt")));
    if (!is_good) break;
    if (number == 1) run.kept_lines = lines_before_resume(run.run_dir);
  }
  recorder.judge(is_good, {.check = kExitCodes,
                           .measured_text = ends,
                           .reason = is_good ? cat("30 steps, then on from checkpoint-15 to 35")
                                             : std::string("expected exit code 0 twice. Fix: read "
                                                           "the log files named as evidence"),
                           .evidence = run.evidence});
  return is_good;
}

void judge_steps(const SmokeRun& run, const std::string& metrics_path, Recorder& recorder) {
  std::string problem;
  int64_t expected = 1;
  for (const metrics::StepRecord& record : run.steps) {
    if (record.step != expected && problem.empty()) {
      problem = cat("record ", expected, " is of step ", record.step);
    }
    ++expected;
  }
  if (problem.empty() && expected != kSecondTarget + 1) {
    problem = cat("the last step is ", expected - 1, ", expected ", kSecondTarget);
  }
  // Times cannot repeat: equal bytes prove that the second line went on instead of starting anew.
  if (problem.empty() && lines_before_resume(run.run_dir) != run.kept_lines) {
    problem =
        cat("the lines of steps 1 to ", kSaveEvery, " were written anew: nothing was resumed");
  }
  recorder.judge(
      problem.empty(),
      {.check = kStepsOnce,
       .measured = static_cast<double>(run.steps.size()),
       .unit = "records",
       .reason = problem.empty() ? std::string("steps 1 to 35 stand there once each") : problem,
       .evidence = {metrics_path}});
}

void judge_work(const SmokeRun& run, const std::string& metrics_path, Recorder& recorder) {
  std::set<std::string> digests;
  std::string read_problem, forward_problem, backward_problem;
  int64_t samples = 0;
  for (const metrics::StepRecord& record : run.steps) {
    digests.insert(record.ids_digest);
    if (record.ids_digest.empty() || record.samples_seen <= samples) {
      read_problem = cat("step ", record.step, " names no new samples");
    }
    samples = record.samples_seen;
    if (!std::isfinite(record.loss) || record.phases.forward_ms <= 0) {
      forward_problem = cat("step ", record.step, ": loss ", record.loss, ", forward took ",
                            record.phases.forward_ms, " ms");
    }
    if (!std::isfinite(record.grad_norm) || record.grad_norm <= 0 ||
        record.phases.backward_ms <= 0) {
      backward_problem = cat("step ", record.step, ": gradient norm ", record.grad_norm,
                             ", backward took ", record.phases.backward_ms, " ms");
    }
  }
  if (read_problem.empty() && digests.size() < 2) {
    read_problem = "every step used the same samples";
  }
  const auto judge = [&](const std::string& check, const std::string& problem,
                         const std::string& good) {
    recorder.judge(
        problem.empty(),
        {.check = check, .reason = problem.empty() ? good : problem, .evidence = {metrics_path}});
  };
  judge(kRead, read_problem, "every step names its samples, and they change");
  judge(kForward, forward_problem, "every loss is finite and forward took time");
  judge(kBackward, backward_problem, "every gradient norm is finite and > 0, backward took time");
}

void judge_checkpoints(ScenarioContext& context, const SmokeRun& run, Recorder& recorder) {
  std::string problem;
  std::vector<std::string> evidence;
  std::set<std::string> model_digests;
  for (const int64_t step : {kSaveEvery, kSecondTarget}) {
    const std::string path = join_path(run.run_dir, checkpoints::checkpoint_name(step));
    if (!is_directory(path)) {
      problem = cat(checkpoints::checkpoint_name(step), " is missing");
      continue;
    }
    for (const checkpoints::VerifyFinding& finding : checkpoints::verify_checkpoint(path)) {
      problem = cat(checkpoints::checkpoint_name(step), " ", finding.file, ": ", finding.problem);
    }
    if (!problem.empty()) continue;
    const std::string manifest = join_path(path, checkpoints::kManifestFile);
    const auto read = checkpoints::manifest_from_json(read_file(manifest), manifest);
    // Not the file's checksum: its header names the step.
    const auto model = read.state_components.find("model");
    if (model != read.state_components.end()) model_digests.insert(model->second);
    evidence.push_back(context.relative(manifest));
  }
  recorder.judge(problem.empty(),
                 {.check = kSave,
                  .reason = problem.empty() ? std::string("checkpoint-15 and checkpoint-35 verify "
                                                          "byte by byte")
                                            : problem,
                  .evidence = evidence});
  if (!problem.empty()) return;
  const bool is_changed = model_digests.size() == 2 && run.steps.back().updates > 0;
  recorder.judge(is_changed,
                 {.check = kUpdate,
                  .measured = static_cast<double>(run.steps.back().updates),
                  .unit = "updates",
                  .reason = is_changed ? std::string("the weights of steps 15 and 35 differ")
                                       : std::string("the weights of steps 15 and 35 are equal: "
                                                     "nothing was learned"),
                  .evidence = evidence});
}

void run_smoke(ScenarioContext& context, Recorder& recorder) {
  context.expect_trials(2);
  SmokeRun run;
  if (!run_both_lines(context, recorder, run)) return;
  const std::string metrics_file = join_path(run.run_dir, "metrics.jsonl");
  run.steps = metrics::read_metrics(metrics_file).steps;
  const std::string metrics_path = context.relative(metrics_file);
  judge_steps(run, metrics_path, recorder);
  if (run.steps.empty()) return;
  judge_work(run, metrics_path, recorder);
  judge_checkpoints(context, run, recorder);
  const RunOutcome outcome = read_outcome(run.run_dir);
  const bool is_good = outcome.final_step == kSecondTarget && outcome.exit_code == 0;
  recorder.judge(is_good, {.check = kResult,
                           .measured = static_cast<double>(outcome.final_step),
                           .unit = "steps",
                           .reason = cat("result.json says ", outcome.status, " at step ",
                                         outcome.final_step, ", exit code ", outcome.exit_code),
                           .evidence = {context.relative(join_path(run.run_dir, "result.json"))}});
  context.drop_weights(run.run_dir);
}

}  // namespace

Scenario smoke_scenario() {
  Scenario scenario;
  scenario.key = "smoke";
  scenario.description = "30 steps with saves, then a resume to 35, as the guides' lines say";
  scenario.needs = {
      .name = "smoke",
      .checks = {kExitCodes, kStepsOnce, kRead, kForward, kBackward, kUpdate, kSave, kResult}};
  scenario.reason_not_to_run = can_always_run;
  scenario.run = run_smoke;
  return scenario;
}

}  // namespace assay::harness
