// Kills training runs at random moments, resumes them, and compares each end with a run that was
// never killed. Half of the kills fall inside saves (at a random write, sync or rename of one), the
// others at a random time. Runs for as long as asked; the tests run a short slice.
//
//   kill_campaign TRAINER --kills 50 --seed 1 --workload digits --folder /tmp/campaign
#include <csignal>
#include <cstdio>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/compare.h"
#include "tests/support/program.h"
#include "trainer/metrics/step_record.h"
#include "trainer/run/run_folder.h"

namespace assay {
namespace {

struct Campaign {
  std::string trainer;
  std::string workload = "digits";
  std::string folder;
  int64_t kills = 50;
  uint64_t seed = 1;
};

Campaign parse(const std::vector<std::string>& words) {
  Campaign campaign;
  if (words.size() % 2 != 1)
    throw ConfigError(
        "usage: kill_campaign TRAINER [--kills N] [--seed S] [--workload digits|text] [--folder "
        "DIR]");
  campaign.trainer = words[0];
  for (size_t i = 1; i < words.size(); i += 2) {
    const std::string& name = words[i];
    const std::string& value = words[i + 1];
    const auto number = parse_int64(value);
    if (name == "--kills" && number && *number > 0)
      campaign.kills = *number;
    else if (name == "--seed" && number && *number >= 0)
      campaign.seed = static_cast<uint64_t>(*number);
    else if (name == "--workload" && (value == "digits" || value == "text"))
      campaign.workload = value;
    else if (name == "--folder")
      campaign.folder = value;
    else
      throw ConfigError(cat("kill_campaign: ", name, " ", quoted(value),
                            " is not an option with a usable value"));
  }
  return campaign;
}

std::vector<std::string> training_words(const Campaign& campaign, const std::string& run_dir) {
  std::vector<std::string> words{campaign.trainer,     "train",
                                 "--output_dir",       run_dir,
                                 "--max_steps",        "40",
                                 "--save_steps",       "5",
                                 "--save_total_limit", "3",
                                 "--eval_steps",       "7",
                                 "--log_sample_ids",   "--deterministic",
                                 "--max_eval_samples", "16"};
  const auto add = [&](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  if (campaign.workload == "digits") {
    add({"--batch_size", "16", "--max_train_samples", "200"});
  } else {
    add({"--model", "gpt_tiny", "model.n_layer=2", "model.n_embd=64", "model.dropout=0.1",
         "--batch_size", "2", "--gradient_accumulation_steps", "2", "--max_train_samples", "70",
         "--lr_scheduler_type", "cosine", "--warmup_steps", "5", "--max_grad_norm", "1"});
  }
  return words;
}

// A random place inside a random save of the run.
std::string random_save_fault(std::mt19937_64& random) {
  static const std::vector<std::string> kPlaces{"checkpoint.begin",
                                                "checkpoint.model.open",
                                                "checkpoint.model.write",
                                                "checkpoint.model.fsync",
                                                "checkpoint.optimizer.write",
                                                "checkpoint.optimizer.close",
                                                "checkpoint.state.write",
                                                "checkpoint.rank.fsync",
                                                "checkpoint.manifest.open",
                                                "checkpoint.manifest.write",
                                                "checkpoint.manifest.fsync",
                                                "checkpoint.sync_dir",
                                                "checkpoint.rename",
                                                "checkpoint.sync_parent",
                                                "checkpoint.latest.write",
                                                "checkpoint.latest.rename",
                                                "checkpoint.latest.sync_parent",
                                                "checkpoint.rotate",
                                                "checkpoint.done"};
  const std::string& place = kPlaces[random() % kPlaces.size()];
  const bool is_late = place == "checkpoint.rotate";  // reached only once more than three are there
  return cat(place, ":", 1 + random() % (is_late ? 4 : 7), "=kill");
}

struct Tally {
  int64_t kills = 0;
  int64_t kills_in_saves = 0;
  int64_t runs = 0;
  int64_t broken = 0;
};

class Runner {
 public:
  explicit Runner(const Campaign& campaign)
      : campaign_(campaign),
        random_(campaign.seed),
        control_(join_path(campaign.folder, "control")) {}

  int run() {
    create_directories(campaign_.folder);
    const double start = monotonic_seconds();
    if (train(control_, "", 0).code != 0) throw InternalError("the control run failed");
    control_seconds_ = monotonic_seconds() - start;
    while (tally_.kills < campaign_.kills) one_run();
    std::printf(
        "%s: %lld kills (%lld inside saves) over %lld runs, %lld ended otherwise than the "
        "control\n",
        campaign_.workload.c_str(), static_cast<long long>(tally_.kills),
        static_cast<long long>(tally_.kills_in_saves), static_cast<long long>(tally_.runs),
        static_cast<long long>(tally_.broken));
    return tally_.broken == 0 ? 0 : 6;
  }

 private:
  support::ProgramEnd train(const std::string& run_dir, const std::string& fault,
                            double kill_after_seconds) {
    std::vector<std::string> words = training_words(campaign_, run_dir);
    if (is_directory(run_dir)) words.insert(words.end(), {"--resume_from_checkpoint", "auto"});
    const double start = monotonic_seconds();
    bool is_sent = false;
    return support::run_program({.command = words,
                                 .environment = {{"ASSAY_FAULTS", fault}},
                                 .working_directory = campaign_.folder,
                                 .watch = [&] {
                                   if (kill_after_seconds <= 0 || is_sent) return 0;
                                   if (monotonic_seconds() - start < kill_after_seconds) return 0;
                                   is_sent = true;
                                   return SIGKILL;
                                 }});
  }

  // Up to three kills of one run, then to the end.
  void one_run() {
    const std::string run_dir = join_path(campaign_.folder, cat("run-", tally_.runs));
    remove_tree(run_dir);
    std::string history;
    for (uint64_t attempt = 0; attempt < 1 + random_() % 3 && tally_.kills < campaign_.kills;
         ++attempt) {
      const bool is_in_save = tally_.kills_in_saves * 2 <= tally_.kills;
      const std::string fault = is_in_save ? random_save_fault(random_) : "";
      const double after =
          is_in_save ? 0 : control_seconds_ * std::uniform_real_distribution<>(0.05, 1.0)(random_);
      const support::ProgramEnd end = train(run_dir, fault, after);
      history += cat(is_in_save ? fault : cat(after, " s"), " -> ", end.code, "; ");
      if (end.code == 128 + SIGKILL) {
        ++tally_.kills;
        tally_.kills_in_saves += is_in_save ? 1 : 0;
      } else if (end.code != 0) {
        report(run_dir, history, end.output);
        return;
      }
    }
    const support::ProgramEnd end = train(run_dir, "", 0);
    ++tally_.runs;
    if (end.code != 0) return report(run_dir, history, end.output);
    judge(run_dir, history);
  }

  void judge(const std::string& run_dir, const std::string& history) {
    const auto control = run::read_result(control_);
    const auto result = run::read_result(run_dir);
    const checkpoints::Comparison comparison = checkpoints::compare_runs(control_, run_dir);
    if (!result || result->state_digest != control->state_digest)
      return report(run_dir, history, "state digest differs");
    if (!comparison.is_bit_equal()) {
      const checkpoints::Difference& first = comparison.differences.front();
      return report(run_dir, history,
                    cat(first.where, " ", first.field, ": ", first.left, " vs ", first.right));
    }
    std::printf("run %lld: equal (%s)\n", static_cast<long long>(tally_.runs), history.c_str());
    std::fflush(stdout);
    remove_tree(run_dir);
  }

  void report(const std::string& run_dir, const std::string& history, const std::string& problem) {
    ++tally_.broken;
    std::printf("BROKEN %s (%s): %s\n", run_dir.c_str(), history.c_str(), problem.c_str());
    std::fflush(stdout);
    // The next run must not go on in the folder that is now evidence.
    rename_path(run_dir, cat(run_dir, "-broken-", tally_.broken), "checkpoint.rename");
  }

  const Campaign& campaign_;
  std::mt19937_64 random_;
  std::string control_;
  double control_seconds_ = 0;
  Tally tally_;
};

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  try {
    assay::Campaign campaign = assay::parse({argv + 1, argv + argc});
    const assay::TemporaryFolder temporary("assay-campaign");
    if (campaign.folder.empty()) campaign.folder = temporary.path();
    std::printf("seed %llu\n", static_cast<unsigned long long>(campaign.seed));
    return assay::Runner(campaign).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kill_campaign: %s\n", assay::describe_exception(error).c_str());
    return static_cast<int>(assay::exit_code_of(error));
  }
}
