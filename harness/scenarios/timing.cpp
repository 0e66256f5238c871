// timing (mission B3, B4): runs of a fixed window; warm-up found from the data; where a step's time
// goes, what saving costs, how much memory it takes.
#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "harness/diagnosis.h"
#include "harness/machine_use.h"
#include "harness/report/escape.h"
#include "harness/run_folder.h"
#include "harness/scenarios/scenario.h"
#include "harness/step_timing.h"
#include "trainer/metrics/step_record.h"

namespace assay::harness {
namespace {

const std::string kExitCodes = "timing.exit_codes";
const std::string kSteady = "timing.steady_window";
const std::string kPhases = "timing.phases_add_up";
const std::string kOther = "timing.other_share";
const std::string kDataWait = "timing.data_wait";
const std::string kSpread = "timing.run_spread";
const std::string kWall = "timing.wall_accounted";
const std::string kSaves = "timing.save_share";
const std::string kQuiet = "timing.quiet_machine";
const std::string kUtilisation = "timing.cpu_utilisation";

constexpr double kSampleSeconds = 0.05;  // fine enough for runs of some seconds

// One workload's runs and what they gave.
struct Measured {
  std::string workload;
  std::vector<RunTiming> runs;
  std::vector<double> steady_ms;
  TimingOfRuns all;
  std::vector<std::string> metrics_files;
  std::vector<double> startup_seconds;
  double unaccounted_fraction = 0;       // greatest of the runs
  double cpu_utilisation = 0;            // median of the runs
  std::optional<double> other_programs;  // greatest of the runs: their share of the CPUs
  uint64_t load_peak_bytes = 0;          // before the first step was finished
  uint64_t process_peak_bytes = 0;
};

// Mean CPU use between the first and the last sample of the stepping part, over the usable CPUs.
double cpu_utilisation(const std::vector<ResourceSample>& samples, int64_t cpus) {
  const auto first = std::find_if(samples.begin(), samples.end(),
                                  [](const ResourceSample& sample) { return sample.step > 0; });
  const auto last = std::find_if(samples.rbegin(), samples.rend(),
                                 [](const ResourceSample& s) { return s.cpu_seconds > 0; });
  if (first == samples.end() || last == samples.rend()) return 0;
  const double wall = last->seconds - first->seconds;
  if (wall <= 0) return 0;
  return (last->cpu_seconds - first->cpu_seconds) / wall /
         static_cast<double>(std::max<int64_t>(cpus, 1));
}

uint64_t load_peak(const std::vector<ResourceSample>& samples) {
  uint64_t peak = 0;
  for (const ResourceSample& sample : samples) {
    if (sample.step > 0) break;
    peak = std::max(peak, sample.rss_bytes);
  }
  return peak;
}

// What of the process's wall time neither start-up, steps nor evaluation explains.
double unaccounted(const TrialResult& trial, const RunOutcome& outcome,
                   const metrics::MetricsFile& file) {
  double explained = outcome.startup_seconds;
  for (size_t i = 1; i < file.steps.size(); ++i) explained += file.steps[i].time_ms / 1000;
  for (const metrics::EvalRecord& record : file.evals) explained += record.time_ms / 1000;
  return std::max(0.0, 1.0 - explained / std::max(trial.wall_seconds, 1e-9));
}

std::optional<Measured> measure(ScenarioContext& context, Recorder& recorder,
                                const Workload& workload) {
  Measured measured;
  measured.workload = workload.name;
  std::vector<double> utilisations;
  for (int64_t run = 1; run <= recorder.count("runs"); ++run) {
    const std::string folder = context.evidence_folder("timing", cat(workload.name, "_run_", run));
    TrialRequest request = context.train(folder, workload,
                                         {"--max_steps", cat(recorder.count("steps")),
                                          "--save_steps", cat(recorder.count("save_steps"))});
    request.sample_seconds = kSampleSeconds;
    const std::optional<MachineUse> before = read_machine_use();
    const TrialResult trial = context.run(request);
    const std::optional<MachineUse> after = read_machine_use();
    if (!trial.is_exit(0)) {
      recorder.judge(false, {.check = kExitCodes,
                             .measured_text = describe_end(trial),
                             .reason = cat("timing run ", run, " of ", workload.name,
                                           " did not end with 0. Fix: read log.txt"),
                             .evidence = {context.relative(join_path(folder, "log.txt"))}});
      return std::nullopt;
    }
    const std::string path = join_path(request.run_dir, "metrics.jsonl");
    const metrics::MetricsFile file = metrics::read_metrics(path);
    const RunOutcome outcome = read_outcome(request.run_dir);
    measured.runs.push_back(time_run(file.steps));
    const auto steady = steady_step_times(file.steps, measured.runs.back());
    measured.steady_ms.insert(measured.steady_ms.end(), steady.begin(), steady.end());
    measured.metrics_files.push_back(context.relative(path));
    measured.startup_seconds.push_back(outcome.startup_seconds);
    measured.unaccounted_fraction =
        std::max(measured.unaccounted_fraction, unaccounted(trial, outcome, file));
    utilisations.push_back(
        cpu_utilisation(trial.samples, context.environment().cpu.available_cpus));
    if (before && after) {
      const auto cpus = static_cast<double>(context.environment().cpu.logical_cpus);
      const double other = other_use_fraction(*before, *after, trial.cpu_seconds, cpus);
      measured.other_programs = std::max(measured.other_programs.value_or(0), other);
    }
    measured.load_peak_bytes = std::max(measured.load_peak_bytes, load_peak(trial.samples));
    measured.process_peak_bytes = std::max(measured.process_peak_bytes, trial.peak_rss_bytes);
    context.drop_weights(request.run_dir);
  }
  measured.all = combine(measured.runs, measured.steady_ms);
  measured.cpu_utilisation = median(utilisations);
  return measured;
}

void report_step_facts(const Measured& measured, Recorder& recorder) {
  const std::string name = cat("timing.", measured.workload, ".");
  const RunTiming& first = measured.runs.front();
  const Summary& step = measured.all.step_ms;
  const std::string window =
      cat(measured.runs.size(), " runs, steady window of run 1: steps ", first.first_steady_step,
          " to ", first.last_step, ", warm-up ", first.warm_up.length,
          " steps found from the data, saves apart, n = ", step.count);
  const auto number = [&](const std::string& key, double value, const std::string& unit,
                          const std::string& note) {
    recorder.fact({.name = name + key, .value = value, .unit = unit, .note = note});
  };
  number("step_median", step.median, "ms", window);
  number("step_mad", step.mad, "ms", "median absolute deviation, same window");
  number("step_p95", step.p95, "ms", "95th percentile, same window");
  number("step_min", step.min, "ms", "same window");
  number("step_max", step.max, "ms", "same window");
  number("step_interval_low", step.interval.low, "ms",
         cat("interval of the median by order statistics, coverage ",
             shown_number(step.interval.coverage * 100, 3), " %"));
  number("step_interval_high", step.interval.high, "ms", "upper end of it");
  number("run_spread", measured.all.run_spread_fraction, "fraction",
         "largest minus smallest median of the runs, over their median");
  number("warm_up_steps", static_cast<double>(first.warm_up.length), "steps", "of run 1");
  number("samples_per_second", first.samples_per_second, "1/s", "steady window of run 1");
  if (first.tokens_per_second > 0) {
    number("tokens_per_second", first.tokens_per_second, "1/s", "steady window of run 1");
  }
  for (const PhaseShare& share : first.phases) {
    number(cat("phase_", share.name), share.median_ms, "ms",
           cat("median; ", shown_number(share.share_fraction * 100, 3),
               " % of the summed step time, run 1"));
  }
  number("startup", median(measured.startup_seconds), "s",
         "from the process's start to the end of its first step, median of the runs");
}

void report_memory_facts(const ScenarioContext& context, const Measured& measured,
                         Recorder& recorder) {
  const std::string name = cat("timing.", measured.workload, ".");
  const RunTiming& first = measured.runs.front();
  const auto bytes = [&](const std::string& key, double value, const std::string& note) {
    recorder.fact({.name = name + key, .value = value, .unit = "bytes", .note = note});
  };
  bytes("memory_load_peak", static_cast<double>(measured.load_peak_bytes),
        "resident, sampled before the first step was finished");
  bytes("memory_first_step", static_cast<double>(first.rss_after_first_step_bytes),
        "resident, after the first full step");
  bytes("memory_steady", static_cast<double>(first.steady_rss_bytes),
        "resident, median over the steady window");
  bytes("memory_process_peak", static_cast<double>(measured.process_peak_bytes),
        "resident, the kernel's peak of the process, saves and evaluation included");
  if (context.environment().is_gpu_present) {
    bytes("memory_device_peak", static_cast<double>(first.peak_allocated_bytes),
          "device allocator's peak");
  }
  if (!first.save_ms.empty()) {
    recorder.fact(
        {.name = name + "save_median",
         .value = median(first.save_ms),
         .unit = "ms",
         .note = cat("time that the steps stood still for a save, n = ", first.save_ms.size())});
  }
  recorder.fact({.name = name + "cpu_utilisation",
                 .value = measured.cpu_utilisation,
                 .unit = "fraction",
                 .note = cat("process CPU time over wall time and ",
                             context.environment().cpu.available_cpus, " usable CPUs, stepping")});
}

// Of all workloads the worst value of one quantity, for checks that speak of all of them.
struct Worst {
  double value = 0;
  std::string where;
  std::vector<std::string> evidence;
};

template <class Quantity>
Worst worst_of(const std::vector<Measured>& all, Quantity quantity) {
  Worst worst;
  worst.value = -1;
  for (const Measured& measured : all) {
    for (size_t i = 0; i < measured.runs.size(); ++i) {
      const double value = quantity(measured, measured.runs[i]);
      if (value > worst.value) {
        worst = {value, cat(measured.workload, " run ", i + 1), {measured.metrics_files[i]}};
      }
    }
  }
  return worst;
}

void judge_consistency(const std::vector<Measured>& all, Recorder& recorder) {
  const Worst gap =
      worst_of(all, [](const Measured&, const RunTiming& run) { return run.worst_gap_fraction; });
  recorder.at_most(
      {.check = kPhases,
       .measured = gap.value,
       .unit = "fraction of the step",
       .reason = cat("largest gap between a step and the sum of its phases: ", gap.where),
       .evidence = gap.evidence});
  const Worst wall =
      worst_of(all, [](const Measured& one, const RunTiming&) { return one.unaccounted_fraction; });
  recorder.at_most({.check = kWall,
                    .measured = wall.value,
                    .unit = "fraction of the wall time",
                    .reason = cat("wall time of the process that neither start-up, steps nor "
                                  "evaluation explain: ",
                                  wall.where),
                    .evidence = wall.evidence});
  const bool is_steady = std::all_of(
      all.begin(), all.end(), [](const Measured& measured) { return measured.all.is_steady; });
  recorder.judge(is_steady,
                 {.check = kSteady,
                  .reason = is_steady ? std::string("every run reached a steady window")
                                      : std::string("a run never became steady: its second "
                                                    "half wanders; medians are of that half")});
  const Worst spread = worst_of(
      all, [](const Measured& one, const RunTiming&) { return one.all.run_spread_fraction; });
  recorder.at_most({.check = kSpread,
                    .measured = spread.value,
                    .unit = "fraction of the median",
                    .reason = cat("how far equal runs' medians lie apart: ", spread.where),
                    .evidence = spread.evidence});
}

// Numbers from a busy machine are true, but they are not this machine's best; the report says so.
void judge_quiet(const std::vector<Measured>& all, Recorder& recorder) {
  std::optional<double> other;
  for (const Measured& measured : all) {
    if (measured.other_programs) other = std::max(other.value_or(0), *measured.other_programs);
  }
  if (!other) {
    recorder.could_not_run({.check = kQuiet, .reason = "/proc/stat cannot be read here"});
    return;
  }
  recorder.at_most({.check = kQuiet,
                    .measured = *other,
                    .unit = "fraction of the CPUs",
                    .reason = *other <= recorder.threshold(kQuiet)
                                  ? "other programs left the CPUs alone during the timing runs"
                                  : "other programs used the CPUs during the timing runs: step "
                                    "times are longer and wander more than on a quiet machine. "
                                    "Fix: stop them, then run --scenarios timing again"});
}

void judge_shares(const ScenarioContext& context, const std::vector<Measured>& all,
                  Recorder& recorder) {
  const Worst other = worst_of(
      all, [](const Measured&, const RunTiming& run) { return phase_share(run, "other"); });
  recorder.at_most({.check = kOther,
                    .measured = other.value,
                    .unit = "fraction of the step",
                    .reason = cat("time that no named phase explains: ", other.where),
                    .evidence = other.evidence});
  const Worst wait = worst_of(all, [](const Measured&, const RunTiming& run) {
    return phase_share(run, "data_wait") / std::max(phase_share(run, "forward"), 1e-9);
  });
  recorder.at_most({.check = kDataWait,
                    .measured = wait.value,
                    .unit = "x forward",
                    .reason = cat("waiting for data over the forward pass: ", wait.where),
                    .evidence = wait.evidence});
  const Worst saves = worst_of(all, [](const Measured&, const RunTiming& run) {
    return run.checkpoint_seconds / std::max(run.total_step_seconds, 1e-9);
  });
  recorder.at_most({.check = kSaves,
                    .measured = saves.value,
                    .unit = "fraction of the run",
                    .reason = cat("time that steps stood still for saves, every ",
                                  recorder.count("save_steps"), " steps: ", saves.where),
                    .evidence = saves.evidence});
  if (context.environment().is_gpu_present) {
    recorder.not_applicable(kUtilisation,
                            "a GPU does the work; its utilisation is not sampled in "
                            "this release");
    return;
  }
  double lowest = 1e9;
  for (const Measured& measured : all) lowest = std::min(lowest, measured.cpu_utilisation);
  recorder.at_least({.check = kUtilisation,
                     .measured = lowest,
                     .unit = "fraction of the CPUs",
                     .reason = "mean CPU use while stepping, the lowest workload's (CPU only)"});
}

void run_timing(ScenarioContext& context, Recorder& recorder) {
  const std::vector<Workload> workloads = context.workloads(recorder.list("workloads"));
  context.expect_trials(recorder.count("runs") * static_cast<int64_t>(workloads.size()));
  std::vector<Measured> all;
  for (const Workload& workload : workloads) {
    std::optional<Measured> measured = measure(context, recorder, workload);
    if (!measured) return;
    all.push_back(std::move(*measured));
  }
  recorder.judge(true, {.check = kExitCodes, .reason = "every timing run ended with exit code 0"});
  judge_consistency(all, recorder);
  judge_quiet(all, recorder);
  judge_shares(context, all, recorder);
  for (const Measured& measured : all) {
    report_step_facts(measured, recorder);
    report_memory_facts(context, measured, recorder);
    recorder.show({"step_time", measured.workload, measured.metrics_files.front()});
    recorder.show({"phases", measured.workload, measured.metrics_files.front()});
    const DiagnosisInput input{.workload = measured.workload,
                               .run = measured.runs.front(),
                               .cpu_utilisation = measured.cpu_utilisation,
                               .other_programs = measured.other_programs.value_or(0),
                               .is_gpu_present = context.environment().is_gpu_present,
                               .other_limit = recorder.threshold(kOther),
                               .data_wait_limit = recorder.threshold(kDataWait),
                               .save_limit = recorder.threshold(kSaves),
                               .utilisation_limit = recorder.threshold(kUtilisation),
                               .other_programs_limit = recorder.threshold(kQuiet)};
    for (const Advice& advice : diagnose(input)) recorder.advise(advice);
  }
}

}  // namespace

Scenario timing_scenario() {
  Scenario scenario;
  scenario.key = "timing";
  scenario.description = "step time, its phases, memory and start-up over a stated window";
  scenario.needs = {.name = "timing",
                    .sizes = {"steps", "runs", "save_steps"},
                    .lists = {"workloads"},
                    .checks = {kExitCodes, kSteady, kPhases, kOther, kDataWait, kSpread, kWall,
                               kSaves, kQuiet, kUtilisation},
                    .checks_with_threshold = {kPhases, kOther, kDataWait, kSpread, kWall, kSaves,
                                              kQuiet, kUtilisation}};
  scenario.reason_not_to_run = can_always_run;
  scenario.run = run_timing;
  return scenario;
}

}  // namespace assay::harness
