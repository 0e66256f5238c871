// Breaks one rank of a job at a random place, in a random way, and judges how the job ends: every
// process gone in time, the broken rank named, the launcher's exit code as documented, and a
// resume that is the same run. Runs for as long as asked; the tests run a short slice.
//
//   rank_fault_campaign ASSAY --faults 100 --seed 1 --folder /tmp/campaign
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/compare.h"
#include "tests/support/processes.h"
#include "tests/support/program.h"
#include "trainer/run/run_folder.h"

namespace assay {
namespace {

constexpr int64_t kMostRanks = 4;
constexpr int64_t kDdpTimeoutSeconds = 4;
// What a broken job may take longer than an unbroken one, which is measured beside it.
constexpr double kEndSeconds = 5.0 + kDdpTimeoutSeconds;
constexpr double kGoneSeconds = 10;

struct Campaign {
  std::string program;
  std::string folder;
  int64_t faults = 100;
  uint64_t seed = 1;
};

Campaign parse(const std::vector<std::string>& words) {
  Campaign campaign;
  if (words.size() % 2 != 1)
    throw ConfigError("usage: rank_fault_campaign ASSAY [--faults N] [--seed S] [--folder DIR]");
  campaign.program = words[0];
  for (size_t i = 1; i < words.size(); i += 2) {
    const std::string& name = words[i];
    const std::string& value = words[i + 1];
    const auto number = parse_int64(value);
    if (name == "--faults" && number && *number > 0)
      campaign.faults = *number;
    else if (name == "--seed" && number && *number >= 0)
      campaign.seed = static_cast<uint64_t>(*number);
    else if (name == "--folder")
      campaign.folder = value;
    else
      throw ConfigError(cat("rank_fault_campaign: ", name, " ", quoted(value),
                            " is not an option with a usable value"));
  }
  return campaign;
}

// One way to break a rank, and how the job must end then.
struct Fault {
  std::string text;        // for ASSAY_FAULTS
  std::vector<int> codes;  // of the launcher; any of them
};

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  uint64_t below(uint64_t count) { return random_() % count; }
  template <typename T>
  const T& pick(const std::vector<T>& list) {
    return list[below(list.size())];
  }

 private:
  std::mt19937_64 random_;
};

Fault random_fault(Dice& dice, int64_t rank) {
  static const std::vector<std::string> kPlaces{
      "train.first_batch", "train.forward", "train.backward", "train.optimizer",
      "train.step_end",    "train.eval",    "ddp.bucket",     "data.read"};
  const std::string where = cat(dice.pick(kPlaces), "@", rank, ":", 1 + dice.below(4));
  switch (dice.below(6)) {
    case 0:
      return {cat(where, "=kill"), {128 + SIGKILL}};
    case 1:
      return {cat(where, "=stop"), {5}};
    case 2:
      return {cat(where, "=exit:3"), {3}};
    case 3:
      return {cat(where, "=throw"), {1}};
    case 4:
      // Gloo finds unequal sizes itself and aborts; otherwise the step's time-out is over (5).
      return {cat("defect.skip_collective@", rank, ":", 1 + dice.below(6), "=on"),
              {5, 128 + SIGABRT}};
    default:
      return {cat("defect.wrong_shape@", rank, ":", 1 + dice.below(6), "=on"), {5, 128 + SIGABRT}};
  }
}

class Runner {
 public:
  explicit Runner(const Campaign& campaign) : campaign_(campaign), dice_(campaign.seed) {}

  int run() {
    create_directories(campaign_.folder);
    for (int64_t trial = 0; trial < campaign_.faults; ++trial) one_fault(trial);
    std::printf("%lld faults, %lld broken; the slowest took %.1f s longer than an unbroken run\n",
                static_cast<long long>(campaign_.faults), static_cast<long long>(broken_),
                slowest_);
    return broken_ == 0 ? 0 : 6;
  }

 private:
  std::vector<std::string> words(int64_t num_ranks, const std::string& run_dir) const {
    return {campaign_.program,
            "launch",
            cat("--nproc-per-node=", num_ranks),
            "--",
            "train",
            "--model=gpt_tiny",
            "model.n_layer=1",
            "model.n_embd=32",
            "model.n_head=2",
            "model.n_positions=16",
            "model.dropout=0.1",
            "--batch_size=2",
            "--max_steps=8",
            "--eval_steps=3",
            "--max_eval_samples=12",
            "--save_steps=2",
            "--num_threads=1",
            "--num_workers=1",
            "--no-tensorboard",
            "ddp.bucket_mb=0.02",
            "ddp.first_bucket_mb=0.02",
            cat("--ddp_timeout=", kDdpTimeoutSeconds),
            cat("--output_dir=", run_dir)};
  }

  support::ProgramEnd launch(int64_t num_ranks, const std::string& run_dir,
                             const std::string& fault, bool is_resume) {
    std::vector<std::string> all = words(num_ranks, run_dir);
    if (is_resume) all.insert(all.end(), {"--resume_from_checkpoint", "auto"});
    return support::run_program({.command = all,
                                 .environment = {{"ASSAY_FAULTS", fault}},
                                 .working_directory = campaign_.folder,
                                 .limit_seconds = 120});
  }

  // The run that was never broken, one for each number of ranks, and how long it takes.
  const std::string& control(int64_t num_ranks) {
    std::string& run_dir = controls_[num_ranks];
    if (!run_dir.empty()) return run_dir;
    run_dir = join_path(campaign_.folder, cat("control-", num_ranks));
    remove_tree(run_dir);
    const double start = monotonic_seconds();
    const support::ProgramEnd end = launch(num_ranks, run_dir, "", false);
    if (end.code != 0) throw InternalError(cat("the control run failed: ", end.output));
    control_seconds_[num_ranks] = monotonic_seconds() - start;
    return run_dir;
  }

  void one_fault(int64_t trial) {
    const auto num_ranks = static_cast<int64_t>(2 + dice_.below(kMostRanks - 1));
    const auto rank = static_cast<int64_t>(dice_.below(static_cast<uint64_t>(num_ranks)));
    const Fault fault = random_fault(dice_, rank);
    const std::string& control_dir = control(num_ranks);
    const std::string run_dir = join_path(campaign_.folder, cat("run-", trial));
    remove_tree(run_dir);
    const std::string name =
        cat("fault ", trial, ": ", num_ranks, " ranks, ", fault.text, " (", run_dir, ")");
    const double start = monotonic_seconds();
    const support::ProgramEnd end = launch(num_ranks, run_dir, fault.text, false);
    const double seconds = monotonic_seconds() - start;
    const double over = seconds - control_seconds_[num_ranks];
    slowest_ = std::max(slowest_, over);
    std::string problem = end_problem(fault, rank, end);
    if (problem.empty() && over > kEndSeconds)
      problem = cat("took ", seconds, " s, the unbroken run ", control_seconds_[num_ranks], " s");
    if (problem.empty()) {
      const auto left = support::processes_with(run_dir, kGoneSeconds);
      if (!left.empty()) problem = cat(left.size(), " processes still run, e.g. ", left.front());
    }
    if (problem.empty()) problem = resume_problem(num_ranks, run_dir, control_dir);
    if (problem.empty()) {
      std::printf("%s: code %d after %.1f s, resumed equal\n", name.c_str(), end.code, seconds);
      remove_tree(run_dir);
    } else {
      ++broken_;
      std::printf("BROKEN %s: %s\n%s\n", name.c_str(), problem.c_str(), end.output.c_str());
    }
    std::fflush(stdout);
  }

  static std::string end_problem(const Fault& fault, int64_t rank, const support::ProgramEnd& end) {
    if (end.code == 0) return "";  // the place was never reached: judged by the comparison
    if (std::find(fault.codes.begin(), fault.codes.end(), end.code) == fault.codes.end())
      return cat("exit code ", end.code, ", expected ", fault.codes.front());
    // The launcher's report is the last of its lines that say where a rank runs.
    const size_t place = end.output.rfind(" (local rank ");
    const size_t line = place == std::string::npos ? place : end.output.rfind('\n', place) + 1;
    if (place == std::string::npos) return "no rank is named";
    const std::string named = end.output.substr(line, place - line);
    if (named != cat("assay launch: rank ", rank)) return cat("another is named: ", named);
    return "";
  }

  std::string resume_problem(int64_t num_ranks, const std::string& run_dir,
                             const std::string& control_dir) {
    const support::ProgramEnd end = launch(num_ranks, run_dir, "", is_directory(run_dir));
    if (end.code != 0) return cat("the resume ended with ", end.code, ": ", end.output);
    const auto control = run::read_result(control_dir);
    const auto result = run::read_result(run_dir);
    if (!result || !control || result->state_digest != control->state_digest)
      return "the resumed run's state digest differs from the unbroken run's";
    const checkpoints::Comparison comparison = checkpoints::compare_runs(control_dir, run_dir);
    if (comparison.is_bit_equal()) return "";
    const checkpoints::Difference& first = comparison.differences.front();
    return cat(first.where, " ", first.field, ": ", first.left, " vs ", first.right);
  }

  Campaign campaign_;
  Dice dice_;
  std::map<int64_t, std::string> controls_;
  std::map<int64_t, double> control_seconds_;
  int64_t broken_ = 0;
  double slowest_ = 0;
};

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  try {
    assay::Campaign campaign = assay::parse({argv + 1, argv + argc});
    const assay::TemporaryFolder temporary("assay-ranks");
    if (campaign.folder.empty()) campaign.folder = temporary.path();
    std::printf("seed %llu\n", static_cast<unsigned long long>(campaign.seed));
    return assay::Runner(campaign).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank_fault_campaign: %s\n", assay::describe_exception(error).c_str());
    return static_cast<int>(assay::exit_code_of(error));
  }
}
