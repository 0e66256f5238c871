// equivalence: the same mathematics in another shape gives the same run (repeat, loader workers,
// accumulation), and evaluation counts each held-out sample once.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "harness/continuity.h"
#include "harness/run_folder.h"
#include "harness/scenarios/scenario.h"
#include "harness/tensor_distance.h"
#include "trainer/metrics/step_record.h"

namespace assay::harness {
namespace {

const std::string kExitCodes = "equivalence.exit_codes";
const std::string kRepeat = "equivalence.repeat_bit_equal";
const std::string kWorkers = "equivalence.workers_bit_equal";
const std::string kFp64 = "equivalence.accumulation_fp64";
const std::string kFp32 = "equivalence.accumulation_fp32";
const std::string kEvaluation = "equivalence.evaluation_once";

struct Variant {
  std::string name;
  std::vector<std::string> words;
};

struct VariantRun {
  Variant variant;
  std::string workload;
  std::string run_dir;
  std::string metrics_file;  // relative
  std::vector<metrics::EvalRecord> evals;
  int64_t expected_eval_samples = 0;
};

class Equivalence {
 public:
  Equivalence(ScenarioContext& context, Recorder& recorder)
      : context_(context), recorder_(recorder) {}

  void run() {
    const auto workers = recorder_.list("worker_counts");
    if (workers.size() < 2) {
      throw ConfigError(cat("suite: equivalence.lists.worker_counts has ", workers.size(),
                            " entries, must have at least 2 to compare"));
    }
    const size_t accumulating = recorder_.list("accumulation_workloads").size();
    context_.expect_trials(static_cast<int64_t>(workers.size() + 1 + 4 * accumulating));
    const Workload digits = find_workload(context_.suite(), "digits");
    const auto first = train(digits, {"workers_" + workers.front(), worker_words(workers.front())});
    const auto again = train(digits, {"repeat", worker_words(workers.front())});
    if (!first || !again) return;
    judge_equal(kRepeat, *first, {*again}, "the same run twice gives the same bits");
    std::vector<VariantRun> others;
    for (size_t i = 1; i < workers.size(); ++i) {
      const auto run = train(digits, {"workers_" + workers[i], worker_words(workers[i])});
      if (!run) return;
      others.push_back(*run);
    }
    judge_equal(kWorkers, *first, others,
                cat("loader workers ", join(workers, ", "), " give the same bits"));
    if (!judge_accumulation(kFp64, "fp64") || !judge_accumulation(kFp32, "fp32")) return;
    recorder_.judge(true, {.check = kExitCodes, .reason = "every run ended with exit code 0"});
    judge_evaluation();
    for (const VariantRun& run : runs_) context_.drop_weights(run.run_dir);
  }

 private:
  static std::vector<std::string> worker_words(const std::string& count) {
    return {"--num_workers", count};
  }

  std::optional<VariantRun> train(const Workload& workload, const Variant& variant) {
    const std::string folder =
        context_.evidence_folder("equivalence", cat(workload.name, "_", variant.name));
    std::vector<std::string> words = {"--deterministic", "--log_sample_ids",
                                      "--max_steps",     cat(recorder_.count("steps")),
                                      "--save_steps",    "0"};
    words.insert(words.end(), variant.words.begin(), variant.words.end());
    const TrialRequest request = context_.train(folder, workload, words);
    const TrialResult trial = context_.run(request);
    if (!trial.is_exit(0)) {
      recorder_.judge(
          false, {.check = kExitCodes,
                  .measured_text = describe_end(trial),
                  .reason = cat("run ", request.name, " did not end with 0. Fix: read log.txt"),
                  .evidence = {context_.relative(join_path(folder, "log.txt"))}});
      return std::nullopt;
    }
    VariantRun run;
    run.variant = variant;
    run.workload = workload.name;
    run.run_dir = request.run_dir;
    const std::string metrics_file = join_path(run.run_dir, "metrics.jsonl");
    run.metrics_file = context_.relative(metrics_file);
    run.evals = metrics::read_metrics(metrics_file).evals;
    run.expected_eval_samples = workload.eval_samples;
    runs_.push_back(run);
    return run;
  }

  void judge_equal(const std::string& check, const VariantRun& reference,
                   const std::vector<VariantRun>& others, const std::string& good) {
    std::string problem;
    std::vector<std::string> evidence = {reference.metrics_file};
    for (const VariantRun& other : others) {
      const ContinuityVerdict verdict =
          judge_continuity(reference.run_dir, other.run_dir, /*tolerance=*/0);
      evidence.push_back(other.metrics_file);
      if (verdict.continuity == Continuity::kBitEqual || !problem.empty()) continue;
      problem = cat(other.variant.name, " against ", reference.variant.name, ": ",
                    verdict.first_difference);
    }
    recorder_.judge(problem.empty(), {.check = check,
                                      .measured_text = problem.empty() ? "bit-equal" : "different",
                                      .reason = problem.empty() ? good : problem,
                                      .evidence = evidence});
  }

  // 1 x n against n x 1 micro-batches: the same global batch, so the same update but for the order
  // of sums. Dropout off and plain SGD: an adaptive optimizer would magnify rounding near zero.
  bool judge_accumulation(const std::string& check, const std::string& precision) {
    const int64_t batch = recorder_.count("accumulation_batch");
    const std::vector<std::string> shared = {"--optim", "sgd", "--learning_rate", "0.01",
                                             "model.dropout=0"};
    double greatest = 0;
    std::string where = "no tensor differs";
    std::vector<std::string> evidence;
    for (const std::string& name : recorder_.list("accumulation_workloads")) {
      Workload workload = find_workload(context_.suite(), name);
      const std::array<std::array<int64_t, 2>, 2> shapes = {{{batch, 1}, {1, batch}}};
      std::vector<std::string> checkpoints;
      for (const auto& [micro_batch, accumulation] : shapes) {
        Variant variant;
        variant.name = cat(precision, "_", accumulation, "x", micro_batch);
        variant.words = shared;
        variant.words.insert(
            variant.words.end(),
            {"--batch_size", cat(micro_batch), "--gradient_accumulation_steps", cat(accumulation)});
        if (precision == "fp64") variant.words.push_back("--fp64");
        const auto run = train(without_batch(workload), variant);
        if (!run) return false;
        checkpoints.push_back(
            join_path(run->run_dir, checkpoints::checkpoint_name(recorder_.count("steps"))));
        evidence.push_back(run->metrics_file);
      }
      const CheckpointDistance distance = model_distance(checkpoints[1], checkpoints[0]);
      if (distance.greatest > greatest) {
        greatest = distance.greatest;
        where = cat(name, " ", distance.greatest_name);
      }
    }
    recorder_.at_most(
        {.check = check,
         .measured = greatest,
         .unit = "||a-b|| / ||b||, largest tensor",
         .reason = cat("weights after ", recorder_.count("steps"), " steps of accumulation 1 and ",
                       batch, " with one global batch of ", batch, ": ", where),
         .evidence = evidence});
    return true;
  }

  // The workload's own --batch_size would stand beside ours.
  static Workload without_batch(Workload workload) {
    auto& options = workload.options;
    const auto found = std::find(options.begin(), options.end(), "--batch_size");
    if (found != options.end() && found + 1 != options.end()) options.erase(found, found + 2);
    return workload;
  }

  void judge_evaluation() {
    std::string problem;
    std::vector<std::string> evidence;
    for (const VariantRun& run : runs_) {
      if (run.evals.empty() && problem.empty()) {
        problem = cat(run.workload, " ", run.variant.name, " wrote no evaluation");
      }
      for (const metrics::EvalRecord& record : run.evals) {
        if (record.samples == run.expected_eval_samples || !problem.empty()) continue;
        problem = cat(run.workload, " ", run.variant.name, " evaluated ", record.samples,
                      " samples, expected ", run.expected_eval_samples);
        evidence.push_back(run.metrics_file);
      }
    }
    recorder_.judge(problem.empty(),
                    {.check = kEvaluation,
                     .measured = static_cast<double>(runs_.size()),
                     .unit = "runs",
                     .reason = problem.empty() ? std::string("each counted every held-out sample "
                                                             "once, whatever its batch")
                                               : problem,
                     .evidence = evidence});
  }

  ScenarioContext& context_;
  Recorder& recorder_;
  std::vector<VariantRun> runs_;
};

void run_equivalence(ScenarioContext& context, Recorder& recorder) {
  Equivalence(context, recorder).run();
}

}  // namespace

Scenario equivalence_scenario() {
  Scenario scenario;
  scenario.key = "equivalence";
  scenario.description = "the same mathematics in another shape gives the same run";
  scenario.needs = {.name = "equivalence",
                    .sizes = {"steps", "accumulation_batch"},
                    .lists = {"worker_counts", "accumulation_workloads"},
                    .checks = {kExitCodes, kRepeat, kWorkers, kFp64, kFp32, kEvaluation},
                    .checks_with_threshold = {kFp64, kFp32}};
  scenario.reason_not_to_run = can_always_run;
  scenario.run = run_equivalence;
  return scenario;
}

}  // namespace assay::harness
