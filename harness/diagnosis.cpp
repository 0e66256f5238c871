#include "harness/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace assay::harness {
namespace {

std::string percent(double fraction) {
  return cat(number_text(std::round(fraction * 1000) / 10), " %");
}

std::string milliseconds(double value) {
  return cat(number_text(std::round(value * 1000) / 1000), " ms");
}

struct Cause {
  double share = 0;  // of the time, for the order
  Advice advice;
};

void add_data_wait(const DiagnosisInput& in, std::vector<Cause>& causes) {
  const double wait = phase_share(in.run, "data_wait");
  const double forward = phase_share(in.run, "forward");
  if (wait <= in.data_wait_limit * forward) return;
  causes.push_back(
      {wait,
       {cat(in.workload, ": the step waits for data"),
        cat("data wait is ", percent(wait), " of the step (median ",
            milliseconds(phase_median_ms(in.run, "data_wait")), "), forward ", percent(forward)),
        "raise --num_workers by one step at a time; if that changes nothing, the disk or decoding "
        "is the limit: put the data on a faster disk or pack them"}});
}

void add_other(const DiagnosisInput& in, std::vector<Cause>& causes) {
  const double other = phase_share(in.run, "other");
  if (other <= in.other_limit) return;
  causes.push_back(
      {other,
       {cat(in.workload, ": part of the step belongs to no phase"),
        cat("other is ", percent(other), " of the step, above ", percent(in.other_limit),
            " (median step ", milliseconds(in.run.step_ms.median), ")"),
        "look for other programs on the same CPUs, then for logging or evaluation inside the step; "
        "on steps of a few ms a larger --batch_size makes the fixed part small"}});
}

void add_saves(const DiagnosisInput& in, std::vector<Cause>& causes) {
  if (in.run.total_step_seconds <= 0) return;
  const double share = in.run.checkpoint_seconds / in.run.total_step_seconds;
  if (share <= in.save_limit) return;
  causes.push_back(
      {share,
       {cat(in.workload, ": saving takes much of the run"),
        cat("steps stood still for saves during ", percent(share), " of the run (",
            in.run.save_ms.size(), " saves, ", duration_text(in.run.checkpoint_seconds), ")"),
        "save less often (--save_steps), or put --output_dir on a faster disk"}});
}

// On a busy machine everything else is a consequence, so this cause comes first.
void add_other_programs(const DiagnosisInput& in, std::vector<Cause>& causes) {
  if (in.other_programs <= in.other_programs_limit) return;
  causes.push_back({1.0 + in.other_programs,
                    {cat(in.workload, ": other programs use the same CPUs"),
                     cat("they took ", percent(in.other_programs),
                         " of the CPUs while this workload was timed; the trainer had ",
                         percent(in.cpu_utilisation)),
                     "stop them and run --scenarios timing again; until then the step times say "
                     "little about the machine"}});
}

void add_idle(const DiagnosisInput& in, std::vector<Cause>& causes) {
  if (in.other_programs > in.other_programs_limit) return;  // not idle, but taken
  if (in.is_gpu_present || in.cpu_utilisation >= in.utilisation_limit) return;
  causes.push_back(
      {1.0 - in.cpu_utilisation,
       {cat(in.workload, ": the CPUs are mostly idle"),
        cat("CPU utilisation while stepping is ", percent(in.cpu_utilisation), ", below ",
            percent(in.utilisation_limit)),
        "raise --batch_size while memory allows; check the cgroup quota and the number "
        "of threads"}});
}

Advice bound_by_compute(const DiagnosisInput& in) {
  const double compute = phase_share(in.run, "forward") + phase_share(in.run, "backward") +
                         phase_share(in.run, "optimizer");
  const std::string evidence = cat("forward, backward and optimizer are ", percent(compute),
                                   " of the step (median ", milliseconds(in.run.step_ms.median),
                                   "); data wait ", percent(phase_share(in.run, "data_wait")),
                                   ", other ", percent(phase_share(in.run, "other")));
  if (in.is_gpu_present) {
    // Events on the stream cannot tell a kernel that runs from one that was launched late.
    return {
        cat(in.workload, ": bound by the training step on the GPU, not by data, copies or saves"),
        cat(evidence, "; whether arithmetic or kernel launches fill it was not measured"),
        "double --batch_size: if samples/s rise with it, launches were the limit; if not, try "
        "--bf16"};
  }
  return {cat(in.workload, ": bound by computing on the CPU; nothing to fix"), evidence,
          "a faster CPU, more CPUs or a GPU would help; tuning data or disk would not"};
}

}  // namespace

std::vector<Advice> diagnose(const DiagnosisInput& input) {
  std::vector<Cause> causes;
  add_data_wait(input, causes);
  add_other(input, causes);
  add_saves(input, causes);
  add_other_programs(input, causes);
  add_idle(input, causes);
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.share > b.share; });
  std::vector<Advice> advice;
  for (Cause& cause : causes) advice.push_back(std::move(cause.advice));
  if (advice.empty()) advice.push_back(bound_by_compute(input));
  return advice;
}

}  // namespace assay::harness
