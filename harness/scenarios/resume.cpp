// resume (mission B7): real kills at many places; every resumed run must be the run that was never
// stopped, field by field, and its ledger must show every sample once.
#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "harness/resume_case.h"
#include "harness/run_folder.h"
#include "harness/scenarios/scenario.h"

namespace assay::harness {
namespace {

const std::string kControl = "resume.control_runs";
const std::string kLanded = "resume.kills_landed";
const std::string kEnded = "resume.resumed_runs_end";
const std::string kEqual = "resume.same_as_uninterrupted";
const std::string kSteps = "resume.steps_once";
const std::string kLedger = "resume.samples_once";
const std::string kSigterm = "resume.sigterm_saves";
const std::string kLost = "resume.lost_steps";
const std::string kRestart = "resume.restart_seconds";

struct KillList {
  ResumeSetting setting;
  std::vector<Kill> kills;
};

// digits and text have lists of their own; the user's configuration takes the longer one's.
std::vector<KillList> plan(const ScenarioContext& context, const Recorder& recorder) {
  std::vector<KillList> lists;
  const auto add = [&](const Workload& workload, const std::string& list) {
    KillList one;
    one.setting.workload = workload;
    one.setting.steps = recorder.count("steps");
    one.setting.save_steps = recorder.count("save_steps");
    one.setting.tolerance = recorder.size("tolerance");
    one.setting.seed = context.suite().seed;
    for (const std::string& word : recorder.list(list)) one.kills.push_back(parse_kill(word));
    lists.push_back(one);
  };
  if (context.has_user_config()) {
    add(context.workloads({}).front(), "digits_kills");
    return lists;
  }
  if (!recorder.list("digits_kills").empty()) {
    add(find_workload(context.suite(), "digits"), "digits_kills");
  }
  if (!recorder.list("text_kills").empty()) {
    add(find_workload(context.suite(), "text"), "text_kills");
  }
  return lists;
}

int64_t trial_count(const std::vector<KillList>& lists) {
  int64_t count = 0;
  for (const KillList& list : lists) {
    ++count;
    for (const Kill& kill : list.kills) count += kill.is_after_resume ? 3 : 2;
  }
  return count;
}

std::string case_name(const ResumeResult& result) { return cat(result.workload, "/", result.kill); }

// Judges one yes-or-no property over all cases; the first bad case is named.
template <class Problem>
void judge_cases(const std::string& check, const std::vector<ResumeResult>& results,
                 const std::string& good, Problem problem_of, Recorder& recorder) {
  if (results.empty()) {
    recorder.could_not_run({.check = check, .reason = "no case came so far"});
    return;
  }
  int64_t bad = 0;
  std::string first;
  std::vector<std::string> evidence;
  for (const ResumeResult& result : results) {
    const std::string problem = problem_of(result);
    if (problem.empty()) continue;
    if (++bad == 1) {
      first = cat(case_name(result), ": ", problem);
      evidence = result.evidence;
    }
  }
  recorder.judge(bad == 0, {.check = check,
                            .measured = static_cast<double>(bad),
                            .measured_text = cat(results.size() - static_cast<size_t>(bad), " of ",
                                                 results.size(), " good"),
                            .unit = "bad cases",
                            .reason = bad == 0 ? good : first,
                            .evidence = evidence});
}

void judge_equality(const std::vector<ResumeResult>& results, Recorder& recorder) {
  std::array<int64_t, 3> counts{};
  const ResumeResult* worst = nullptr;
  double greatest = 0;
  for (const ResumeResult& result : results) {
    const Continuity continuity = result.continuity.continuity;
    ++counts[static_cast<size_t>(continuity)];
    if (continuity == Continuity::kBitEqual) continue;
    // What is not bit-equal differs, be it by the sign of a zero.
    const double relative =
        continuity == Continuity::kBroken
            ? std::numeric_limits<double>::infinity()
            : std::max(result.continuity.greatest_relative, std::numeric_limits<double>::min());
    if (worst == nullptr || relative > greatest) {
      worst = &result;
      greatest = relative;
    }
  }
  recorder.at_most(
      {.check = kEqual,
       .measured = greatest,
       .measured_text =
           cat(counts[0], " bit-equal, ", counts[1], " within tolerance, ", counts[2], " broken"),
       .unit = "relative difference",
       .reason = worst == nullptr
                     ? std::string("metrics, sample ids, checkpoints and state digest are equal "
                                   "bit for bit after every kill")
                     : cat(case_name(*worst), " is ", continuity_name(worst->continuity.continuity),
                           ": ", worst->continuity.first_difference),
       .evidence = worst == nullptr ? std::vector<std::string>{} : worst->evidence});
}

void judge_costs(const std::vector<ResumeResult>& results, Recorder& recorder) {
  const ResumeResult* most_lost = nullptr;
  const ResumeResult* slowest = nullptr;
  for (const ResumeResult& result : results) {
    if (most_lost == nullptr || result.lost_steps() > most_lost->lost_steps()) most_lost = &result;
    if (result.restart_seconds &&
        (slowest == nullptr || *result.restart_seconds > *slowest->restart_seconds)) {
      slowest = &result;
    }
  }
  if (most_lost != nullptr) {
    recorder.at_most(
        {.check = kLost,
         .measured = static_cast<double>(most_lost->lost_steps()),
         .unit = "steps",
         .reason = cat(case_name(*most_lost), " was killed after step ", most_lost->last_step,
                       " and went on from ", most_lost->resumed_from),
         .evidence = most_lost->evidence});
  }
  if (slowest != nullptr) {
    recorder.at_most({.check = kRestart,
                      .measured = *slowest->restart_seconds,
                      .unit = "s",
                      .reason = cat("from the restart to the first new step, the slowest: ",
                                    case_name(*slowest)),
                      .evidence = slowest->evidence});
  }
}

void judge_results(const std::vector<ResumeResult>& all, Recorder& recorder) {
  std::vector<ResumeResult> landed;
  std::vector<ResumeResult> ended;
  std::vector<ResumeResult> signalled;
  std::string missed;
  for (const ResumeResult& result : all) {
    if (!result.is_landed) {
      missed += cat(missed.empty() ? "" : "; ", case_name(result), ": ", result.problem);
      continue;
    }
    landed.push_back(result);
    if (result.problem.empty()) ended.push_back(result);
    if (result.kill == "sigterm") signalled.push_back(result);
  }
  const Outcome landing{
      .check = kLanded,
      .measured = static_cast<double>(landed.size()),
      .measured_text = cat(landed.size(), " of ", all.size()),
      .unit = "kills",
      .reason = missed.empty() ? std::string("every kill hit a running trainer") : missed};
  if (missed.empty()) {
    recorder.judge(true, landing);
  } else {
    recorder.could_not_run(landing);
  }
  judge_cases(
      kEnded, landed, "every resumed run reached its target with exit code 0",
      [](const ResumeResult& result) { return result.problem; }, recorder);
  const bool has_sigterm = std::any_of(
      all.begin(), all.end(), [](const ResumeResult& result) { return result.kill == "sigterm"; });
  if (!has_sigterm) {
    recorder.not_applicable(kSigterm, "the suite's kill lists hold no sigterm");
  } else {
    judge_cases(
        kSigterm, signalled, "SIGTERM saved the last step and ended with 143",
        [](const ResumeResult& result) { return result.sigterm_problem; }, recorder);
  }
  if (ended.empty()) return;
  judge_equality(ended, recorder);
  judge_cases(
      kSteps, ended, "after each resume metrics.jsonl has every step once",
      [](const ResumeResult& result) { return result.step_problem; }, recorder);
  judge_cases(
      kLedger, ended, "every sample once an epoch, in every stitched run",
      [](const ResumeResult& result) {
        return result.ledger.findings.empty() ? std::string()
                                              : result.ledger.findings.front().problem;
      },
      recorder);
  judge_costs(ended, recorder);
}

void report_cases(const std::vector<ResumeResult>& results, Recorder& recorder) {
  for (const ResumeResult& result : results) {
    std::string text = result.problem.empty()
                           ? std::string(continuity_name(result.continuity.continuity))
                           : result.problem;
    if (result.is_landed) {
      text += cat("; killed after step ", result.last_step, ", went on from ", result.resumed_from,
                  ", ", result.lost_steps(), " steps lost");
    }
    Fact fact;
    fact.name = cat("resume.", result.workload, ".", result.kill);
    fact.value = result.restart_seconds;
    fact.unit = result.restart_seconds ? "s to the first new step" : "";
    fact.text = text;
    fact.note =
        cat(result.continuity.compared_steps, " steps, ", result.continuity.compared_checkpoints,
            " checkpoints, ", result.continuity.compared_tensors, " tensors and ",
            result.ledger.samples, " sample uses compared with the control");
    recorder.fact(fact);
  }
}

void run_lists(ScenarioContext& context, const std::vector<KillList>& lists,
               std::vector<ResumeResult>& results, Recorder& recorder) {
  for (const KillList& list : lists) {
    const std::string& workload = list.setting.workload.name;
    const ControlRun control = run_control(context, list.setting);
    if (!control.trial.is_exit(0)) {
      recorder.judge(false, {.check = kControl,
                             .measured_text = describe_end(control.trial),
                             .reason = cat("the control run of ", workload,
                                           " was not killed and yet did not end with 0. Fix: read "
                                           "log.txt"),
                             .evidence = {context.relative(join_path(control.folder, "log.txt"))}});
      return;
    }
    const std::string metrics_file = context.relative(join_path(control.run_dir, "metrics.jsonl"));
    recorder.show({"loss", cat(workload, " control"), metrics_file});
    bool is_shown = false;
    for (const Kill& kill : list.kills) {
      results.push_back(kill_and_resume(context, list.setting, control, kill));
      const ResumeResult& result = results.back();
      if (is_shown || result.metrics_file.empty() || result.resumed_from == 0) continue;
      recorder.show({"loss", cat(workload, " resumed"), result.metrics_file, result.resumed_from,
                     cat("resumed from step ", result.resumed_from, " after ", kill.name)});
      is_shown = true;
    }
    context.drop_weights(control.run_dir);
  }
  recorder.judge(true, {.check = kControl, .reason = "every control run ended with exit code 0"});
}

bool is_bad(const ResumeResult& result) {
  return result.is_landed && (!result.problem.empty() || !result.sigterm_problem.empty() ||
                              !result.step_problem.empty() || !result.ledger.findings.empty() ||
                              result.continuity.continuity == Continuity::kBroken);
}

void run_resume(ScenarioContext& context, Recorder& recorder) {
  const std::vector<KillList> lists = plan(context, recorder);
  context.expect_trials(trial_count(lists));
  std::vector<ResumeResult> results;
  try {
    run_lists(context, lists, results, recorder);
  } catch (...) {
    // An interruption or a used-up budget does not undo what was already seen to be wrong.
    if (std::any_of(results.begin(), results.end(), is_bad)) judge_results(results, recorder);
    throw;
  }
  judge_results(results, recorder);
  report_cases(results, recorder);
}

}  // namespace

Scenario resume_scenario() {
  Scenario scenario;
  scenario.key = "resume";
  scenario.description = "killed and resumed runs against one that was never stopped";
  scenario.needs = {
      .name = "resume",
      .sizes = {"steps", "save_steps", "tolerance"},
      .lists = {"digits_kills", "text_kills"},
      .checks = {kControl, kLanded, kEnded, kEqual, kSteps, kLedger, kSigterm, kLost, kRestart},
      .checks_with_threshold = {kEqual, kLost, kRestart}};
  scenario.reason_not_to_run = can_always_run;
  scenario.run = run_resume;
  return scenario;
}

}  // namespace assay::harness
