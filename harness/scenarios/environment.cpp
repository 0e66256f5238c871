// environment (mission B1): is the machine what it claims to be, and does the trainer start on it?
#include <algorithm>

#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "harness/run_folder.h"
#include "harness/scenarios/scenario.h"

namespace assay::harness {
namespace {

const std::string kGpuUsable = "environment.gpu_usable";
const std::string kDriver = "environment.driver";
const std::string kArchitecture = "environment.gpu_architecture";
const std::string kLoads = "environment.trainer_loads";
const std::string kSameBuild = "environment.same_build";
const std::string kUsesGpu = "environment.trainer_uses_gpu";
const std::string kProblems = "environment.problems";

constexpr std::string_view kOldGpuFix =
    "Fix: update the driver, or set LIBTORCH= to a CUDA 12 LibTorch";

void judge_gpu(const platform::Environment& machine, Recorder& recorder) {
  const bool is_usable = machine.is_nvml_usable && !machine.gpus.empty();
  if (!machine.is_gpu_present) {
    for (const std::string& check : {kGpuUsable, kDriver, kArchitecture, kUsesGpu}) {
      recorder.not_applicable(check, "no GPU is present (PCI, /dev/nvidia*): CPU only");
    }
    return;
  }
  recorder.judge(is_usable, {.check = kGpuUsable,
                             .measured = static_cast<double>(machine.gpus.size()),
                             .unit = "GPUs",
                             .reason = is_usable ? "present and answering"
                                                 : cat("a GPU is present but not usable: ",
                                                       machine.nvml_problem)});
  const double major = parse_double(split(machine.driver_version, '.').front()).value_or(0);
  recorder.at_least({.check = kDriver,
                     .measured = major,
                     .measured_text = machine.driver_version,
                     .reason = major >= recorder.threshold(kDriver)
                                   ? cat("supports CUDA ", machine.driver_cuda_version)
                                   : cat("driver ", assay::quoted(machine.driver_version),
                                         " is too old. ", kOldGpuFix)});
  if (machine.gpus.empty()) {
    recorder.could_not_run({.check = kArchitecture, .reason = "no GPU answers"});
    return;
  }
  double oldest = 1e9;
  std::string names;
  for (const platform::GpuFacts& gpu : machine.gpus) {
    const double architecture = static_cast<double>(gpu.compute_major * 10 + gpu.compute_minor);
    oldest = std::min(oldest, architecture);
    names += cat(names.empty() ? "" : ", ", gpu.name, " sm_", gpu.compute_major, gpu.compute_minor);
  }
  recorder.at_least({.check = kArchitecture,
                     .measured = oldest,
                     .measured_text = names,
                     .reason = oldest >= recorder.threshold(kArchitecture)
                                   ? std::string("supported by the pinned LibTorch")
                                   : cat(names, ": too old. ", kOldGpuFix)});
}

// The harness can judge a trainer it was not built with, but a mixture of two builds is a likely
// reason of odd findings, so it is shown.
void judge_build(ScenarioContext& context, Recorder& recorder) {
  const std::string folder = context.evidence_folder("environment", "trainer_version");
  TrialRequest request = context.train_words(folder, {});
  request.command = {find_trainer(), "--version"};
  const TrialResult result = context.run(request);
  const std::string log_file = join_path(folder, "log.txt");
  if (!result.is_exit(0)) {
    recorder.could_not_run(
        {.check = kSameBuild,
         .reason = cat("the trainer's --version ended with ", describe_end(result)),
         .evidence = {context.relative(log_file)}});
    return;
  }
  const std::string trainer = trimmed(read_file(log_file));
  const bool is_same = trainer.find(git_commit()) != std::string::npos;
  recorder.judge(is_same, {.check = kSameBuild,
                           .measured_text = trainer,
                           .reason = is_same ? std::string("harness and trainer are of one commit")
                                             : cat("the harness is of commit ", git_commit(),
                                                   ". Fix: build and install both together"),
                           .evidence = {context.relative(log_file)}});
}

void judge_trainer(ScenarioContext& context, Recorder& recorder) {
  const std::string folder = context.evidence_folder("environment", "trainer_help");
  const TrialResult help = context.run(context.train_words(folder, {"--help"}));
  recorder.judge(
      help.is_exit(0),
      {.check = kLoads,
       .measured = help.wall_seconds,
       .unit = "s",
       .reason = help.is_exit(0) ? std::string("the trainer starts and its libraries load")
                                 : cat("assay-train train --help ended with ", describe_end(help),
                                       ". Fix: read log.txt; a library that does not load is "
                                       "named there"),
       .evidence = {context.relative(join_path(folder, "log.txt"))}});
  if (!context.environment().is_gpu_present) return;
  const std::string probe = context.evidence_folder("environment", "gpu_probe");
  const TrialRequest request =
      context.train_words(probe, {"--device", "cuda", "--max_steps", "1", "--batch_size", "1",
                                  "--output_dir", join_path(probe, "run")});
  const TrialResult result = context.run(request);
  recorder.judge(
      result.is_exit(0),
      {.check = kUsesGpu,
       .measured = result.wall_seconds,
       .unit = "s",
       .reason = result.is_exit(0) ? std::string("one step was trained with --device cuda")
                                   : cat("one step with --device cuda ended with ",
                                         describe_end(result), ". Fix: read log.txt"),
       .evidence = {context.relative(join_path(probe, "log.txt"))}});
  context.drop_weights(join_path(probe, "run"));
}

void run_environment(ScenarioContext& context, Recorder& recorder) {
  const platform::Environment& machine = context.environment();
  context.expect_trials(machine.is_gpu_present ? 3 : 2);
  judge_gpu(machine, recorder);
  judge_trainer(context, recorder);
  judge_build(context, recorder);
  std::string text;
  const auto problems = platform::find_problems(machine);
  for (const platform::EnvironmentProblem& problem : problems) {
    text += cat(text.empty() ? "" : "; ", problem.what, ". Fix: ", problem.fix);
  }
  recorder.judge(problems.empty(),
                 {.check = kProblems,
                  .measured = static_cast<double>(problems.size()),
                  .unit = "findings",
                  .reason = problems.empty() ? std::string("nothing looks wrong") : text});
  recorder.fact({.name = "environment.cpu",
                 .text = cat(machine.cpu.model, ", ", machine.cpu.available_cpus, " of ",
                             machine.cpu.logical_cpus, " CPUs usable")});
  recorder.fact({.name = "environment.memory",
                 .value = static_cast<double>(machine.memory.total_bytes),
                 .unit = "bytes",
                 .note = machine.memory.cgroup_limit_bytes > 0
                             ? cat("cgroup limit ", machine.memory.cgroup_limit_bytes, " bytes")
                             : std::string("no cgroup limit")});
}

}  // namespace

Scenario environment_scenario() {
  Scenario scenario;
  scenario.key = "environment";
  scenario.description = "what this machine is, and whether the trainer starts on it";
  scenario.needs = {
      .name = "environment",
      .checks = {kGpuUsable, kDriver, kArchitecture, kLoads, kSameBuild, kUsesGpu, kProblems},
      .checks_with_threshold = {kDriver, kArchitecture}};
  scenario.reason_not_to_run = can_always_run;
  scenario.run = run_environment;
  return scenario;
}

}  // namespace assay::harness
