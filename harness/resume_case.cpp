#include "harness/resume_case.h"

#include <algorithm>
#include <csignal>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "harness/run_folder.h"
#include "trainer/metrics/step_record.h"

namespace assay::harness {
namespace {

constexpr int kAttempts = 3;  // a run may end before a kill by time; each attempt comes earlier

std::string folder_name(const std::string& kill) {
  std::string name = kill;
  for (char& letter : name) {
    if (letter == ':' || letter == '.') letter = '_';
  }
  return name;
}

// What a killed run left: its last finished step and its newest committed checkpoint.
void read_leftovers(const std::string& run_dir, ResumeResult& result) {
  result.last_step = 0;
  result.resumed_from = 0;
  if (!is_directory(run_dir)) return;
  const std::string metrics_file = join_path(run_dir, "metrics.jsonl");
  if (path_exists(metrics_file)) {
    const auto steps = metrics::read_metrics(metrics_file).steps;
    if (!steps.empty()) result.last_step = steps.back().step;
  }
  const auto entries = checkpoints::list_checkpoints(run_dir);
  if (!entries.empty()) result.resumed_from = entries.back().step;
  // A checkpoint is committed after its step's line was written and synced.
  result.last_step = std::max(result.last_step, result.resumed_from);
}

// How the session that was to be killed ended.
enum class Landing {
  kLanded,         // by our signal, while it was going on
  kFinishedFirst,  // at its target with exit code 0, before the signal came
  kBroken,         // otherwise: a finding about the trainer
};

// The lines of steps 1..`step` as they stand; their times cannot repeat, so equal bytes after a
// resume prove that those steps were not done again.
std::string lines_up_to(const std::string& run_dir, int64_t step) {
  const std::string file = join_path(run_dir, "metrics.jsonl");
  if (step == 0 || !path_exists(file)) return "";
  return metrics::split_log_at_step(read_file(file), step).kept;
}

class ResumeCase {
 public:
  ResumeCase(ScenarioContext& context, const ResumeSetting& setting, const ControlRun& control,
             const Kill& kill)
      : context_(context),
        setting_(setting),
        control_(control),
        kill_(kill),
        clock_(setting.seed, setting.workload.name, kill.name),
        folder_(context.evidence_folder("resume",
                                        cat(setting.workload.name, "_", folder_name(kill.name)))),
        run_dir_(join_path(folder_, "run")) {
    result_.workload = setting.workload.name;
    result_.kill = kill.name;
  }

  ResumeResult run() {
    Landing landing = Landing::kFinishedFirst;
    for (int attempt = 1; attempt <= kAttempts && landing == Landing::kFinishedFirst; ++attempt) {
      remove_tree(run_dir_);
      landing = attempt_kill(1.0 / attempt);
    }
    if (landing == Landing::kFinishedFirst) {
      result_.problem = cat("the kill never came while the run was going on (", end_text_, ")");
      return result_;
    }
    result_.is_landed = true;
    if (landing == Landing::kBroken) {
      result_.problem = cat("the session to be killed ended with ", end_text_,
                            "; expected is the kill, or exit code 0 at step ", setting_.steps);
      return result_;
    }
    read_leftovers(run_dir_, result_);
    kept_lines_ = lines_up_to(run_dir_, result_.resumed_from);
    if (kill_.kind == KillKind::kSigterm) judge_sigterm();
    resume_to_end();
    return result_;
  }

 private:
  TrialRequest session(const std::string& name, bool is_resume) {
    std::vector<std::string> words = resume_words(setting_);
    if (is_resume) words.insert(words.end(), {"--resume_from_checkpoint", "auto"});
    TrialRequest request = context_.train(folder_, setting_.workload, words);
    request.folder = join_path(folder_, name);  // a log a session, one run folder for all
    request.name = context_.relative(request.folder);
    result_.evidence.push_back(context_.relative(join_path(request.folder, "log.txt")));
    return request;
  }

  void arm(TrialRequest& request, double earlier) {
    switch (kill_.kind) {
      case KillKind::kRandomStep:
      case KillKind::kSigterm: {
        const int64_t last = std::max<int64_t>(2, setting_.steps - 3);
        const auto latest = static_cast<int64_t>(earlier * static_cast<double>(last));
        request.kill_at_step = clock_.step(1, std::max<int64_t>(latest, 1));
        if (kill_.kind == KillKind::kSigterm) request.kill_signal = SIGTERM;
        break;
      }
      case KillKind::kRandomWall:
        // Not below a tenth: loading the libraries is not training.
        request.kill_after_seconds =
            control_.trial.wall_seconds * earlier * (0.1 + 0.85 * clock_.fraction());
        break;
      case KillKind::kFaultPoint:
        request.environment["ASSAY_FAULTS"] = fault_text(kill_);
        break;
    }
  }

  Landing attempt_kill(double earlier) {
    result_.evidence.clear();
    if (kill_.is_after_resume) {
      TrialRequest first = session("first", false);
      // After the first save, so that the second session really resumes.
      first.kill_at_step = clock_.step(setting_.save_steps + 1,
                                       std::max(setting_.save_steps + 1, setting_.steps / 2));
      const Landing landing = landing_of(context_.run(first), /*is_by_fault_point=*/false);
      if (landing != Landing::kLanded) return landing;
    }
    read_leftovers(run_dir_, result_);
    TrialRequest request = session("killed", kill_.is_after_resume);
    request.first_new_step = kill_.is_after_resume ? result_.resumed_from + 1 : 1;
    arm(request, earlier);
    const TrialResult end = context_.run(request);
    if (kill_.kind != KillKind::kSigterm) {
      return landing_of(end, kill_.kind == KillKind::kFaultPoint);
    }
    sigterm_end_ = end;
    end_text_ = describe_end(end);
    read_leftovers(run_dir_, result_);
    // A run that was done before the signal came has not been signalled; one that stops short of
    // its target with exit code 0 is judged, since nothing but the target may end with 0.
    if (end.is_exit(0) && result_.last_step == setting_.steps) return Landing::kFinishedFirst;
    return end.is_kill_sent ? Landing::kLanded : Landing::kBroken;
  }

  // A SIGKILL that we did not send is somebody else's (out of memory?), not the one we asked for.
  Landing landing_of(const TrialResult& end, bool is_by_fault_point) {
    end_text_ = describe_end(end);
    read_leftovers(run_dir_, result_);
    if (end.signal_number == SIGKILL && !end.is_timed_out &&
        (end.is_kill_sent || is_by_fault_point)) {
      return Landing::kLanded;
    }
    if (end.is_exit(0) && result_.last_step == setting_.steps) return Landing::kFinishedFirst;
    return Landing::kBroken;
  }

  void judge_sigterm() {
    if (!sigterm_end_.is_exit(128 + SIGTERM)) {
      result_.sigterm_problem = cat("SIGTERM ended the run with ", describe_end(sigterm_end_),
                                    ", expected exit code 143");
    } else if (result_.resumed_from != result_.last_step) {
      result_.sigterm_problem =
          cat("SIGTERM after step ", result_.last_step, " left checkpoint ", result_.resumed_from,
              " as the newest, expected one of the last step");
    }
  }

  void resume_to_end() {
    TrialRequest request = session("resumed", true);
    request.first_new_step = result_.resumed_from + 1;
    const TrialResult end = context_.run(request);
    result_.restart_seconds = end.first_step_seconds;
    if (!end.is_exit(0)) {
      result_.problem =
          cat("the resumed run ended with ", describe_end(end), ", expected exit code 0");
      return;
    }
    result_.metrics_file = context_.relative(join_path(run_dir_, "metrics.jsonl"));
    result_.evidence.push_back(result_.metrics_file);
    if (lines_up_to(run_dir_, result_.resumed_from) != kept_lines_) {
      result_.problem = cat("the resumed run did not go on from checkpoint ", result_.resumed_from,
                            ": the log lines of the steps before it were written anew");
      return;
    }
    judge_steps();
    LedgerRules rules;
    rules.last_step = setting_.steps;
    rules.train_samples = setting_.workload.train_samples;
    rules.drops_last = setting_.workload.drops_last;
    result_.ledger = check_ledger(read_ids(run_dir_), rules);
    result_.continuity = judge_continuity(control_.run_dir, run_dir_, setting_.tolerance);
    context_.drop_weights(run_dir_);
  }

  void judge_steps() {
    int64_t expected = 1;
    for (const auto& record : metrics::read_metrics(join_path(run_dir_, "metrics.jsonl")).steps) {
      if (record.step != expected) {
        result_.step_problem =
            cat("step ", record.step, " stands where step ", expected, " was expected");
        return;
      }
      ++expected;
    }
    if (expected != setting_.steps + 1) {
      result_.step_problem = cat("the last step is ", expected - 1, ", expected ", setting_.steps);
    }
  }

  ScenarioContext& context_;
  const ResumeSetting& setting_;
  const ControlRun& control_;
  const Kill& kill_;
  KillClock clock_;
  std::string folder_;
  std::string run_dir_;
  std::string end_text_;
  std::string kept_lines_;  // of the steps before the checkpoint resumed from
  TrialResult sigterm_end_;
  ResumeResult result_;
};

}  // namespace

std::vector<std::string> resume_words(const ResumeSetting& setting) {
  return {"--deterministic",  "--log_sample_ids", "--max_steps",
          cat(setting.steps), "--save_steps",     cat(setting.save_steps)};
}

ControlRun run_control(ScenarioContext& context, const ResumeSetting& setting) {
  ControlRun control;
  control.folder = context.evidence_folder("resume", cat(setting.workload.name, "_control"));
  const TrialRequest request =
      context.train(control.folder, setting.workload, resume_words(setting));
  control.run_dir = request.run_dir;
  control.trial = context.run(request);
  return control;
}

ResumeResult kill_and_resume(ScenarioContext& context, const ResumeSetting& setting,
                             const ControlRun& control, const Kill& kill) {
  return ResumeCase(context, setting, control, kill).run();
}

}  // namespace assay::harness
