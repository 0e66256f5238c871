// Checks the prediction for several ranks (trainer/estimate/scaling_model.h) against real runs over
// Gloo, each rank on a host of its own whose way out is limited. Backward sleeps before each
// bucket, so that the few cores of one machine do not measure their own contention. Prints JSON
// lines; ends with 6 if a prediction is off by more than the bound.
//
//   bench_scaling_check TRAINER [mbit=200] [stall_ms=80] [steps=12] [bound=0.10]
//
// Link: latency and bandwidth are fitted to runs of two ranks with one bucket of three sizes. Step:
// measured on one rank without sleep. What is then predicted (several buckets, 1, 2 and 4 ranks)
// was not fitted.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "bench/limited_network.h"
#include "harness/child_process.h"
#include "trainer/estimate/link_fit.h"
#include "trainer/estimate/scaling_model.h"
#include "trainer/metrics/step_record.h"

namespace assay::bench {
namespace {

using Words = std::vector<std::string>;
constexpr int64_t kMostRanks = 4;
constexpr size_t kWarmupSteps = 4;

struct Settings {
  std::string trainer;
  int64_t mbit = 200;
  double stall_ms = 80;
  int64_t steps = 12;
  double bound = 0.10;
};

// A small GPT: `width` sets how many bytes its gradients have.
struct Job {
  int64_t width = 128;
  double bucket_mb = 1024;  // one bucket
};

struct Medians {
  double forward_ms = 0;
  double backward_ms = 0;
  double comm_ms = 0;
  double update_ms = 0;
  double step_ms = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Checker {
 public:
  explicit Checker(const Settings& settings)
      : settings_(settings), network_(kMostRanks, settings.mbit) {}

  bool run() {
    const estimate::LinkFit fit = fit_link();
    std::printf("{\"event\":\"fit\",\"latency_us\":%.1f,\"gb_per_s\":%.5f,\"worst_error\":%.4f}\n",
                fit.link.latency_us, fit.link.gb_per_s, fit.worst_error_fraction);
    const estimate::Cluster cluster = {.ranks_per_node = 1, .intra = fit.link, .inter = fit.link};
    bool is_good = true;
    for (const Job& job : {Job{128, 0.5}, Job{192, 2.0}, Job{256, 1.0}}) {
      is_good = check(job, cluster) && is_good;
    }
    return is_good;
  }

 private:
  Words words_of(const Job& job) const {
    return {"--model=gpt_tiny",
            cat("model.n_embd=", job.width),
            "data.sequence_length=16",
            "--dataset=synthetic",
            "data.synthetic_samples=4096",
            "--batch_size=1",
            "--optim=sgd",
            "--device=cpu",
            "--num_threads=1",
            "--num_workers=0",
            "--max_eval_samples=1",
            "--save_steps=0",
            "--check_replicas_steps=0",
            "--no-tensorboard",
            cat("--ddp_bucket_cap_mb=", job.bucket_mb),
            cat("--ddp_first_bucket_mb=", job.bucket_mb)};
  }

  Words command_of(const Job& job, const std::string& command) const {
    Words words = {settings_.trainer, command};
    for (const std::string& word : words_of(job)) words.push_back(word);
    return words;
  }

  // What `assay estimate` says of the buckets of a job whose step takes `step_ms`.
  std::vector<estimate::Bucket> buckets_of(const Job& job, double step_ms) const {
    Words words = command_of(job, "estimate");
    words.insert(words.end(), {"--json", "--world=2", cat("--step-ms=", step_ms)});
    const platform::ChildResult result = platform::run_and_capture(words, 60);
    const auto json = nlohmann::json::parse(result.output, nullptr, false);
    if (!json.is_object()) {
      throw CouldNotRunError(cat("assay-train estimate said: ", result.output));
    }
    std::vector<estimate::Bucket> buckets;
    for (const auto& bucket : json.at("scaling").at("buckets")) {
      buckets.push_back({bucket.at("bytes").get<double>(), bucket.at("ready_ms").get<double>()});
    }
    return buckets;
  }

  Medians train(const Job& job, int64_t ranks, const std::string& faults) const {
    const TemporaryFolder folder("assay-scaling");
    std::vector<std::unique_ptr<harness::ChildProcess>> children;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      Words words = network_.on_host(rank);
      for (const std::string& word : command_of(job, "train")) words.push_back(word);
      words.push_back(cat("--output_dir=", join_path(folder.path(), "run")));
      words.push_back(cat("--max_steps=", settings_.steps));
      harness::ChildRequest request;
      request.command = words;
      request.dropped_variables = {"TORCHELASTIC_*", "PET_*", "SLURM_*", "OMPI_*", "PMI_*"};
      request.environment = {{"RANK", cat(rank)},
                             {"LOCAL_RANK", "0"},
                             {"WORLD_SIZE", cat(ranks)},
                             {"LOCAL_WORLD_SIZE", "1"},
                             {"MASTER_ADDR", LimitedNetwork::address(0)},
                             {"MASTER_PORT", "29533"},
                             {"ASSAY_FAULTS", faults}};
      request.log_file = join_path(folder.path(), cat("rank", rank, ".txt"));
      children.push_back(std::make_unique<harness::ChildProcess>(request));
    }
    wait_for(children, folder.path());
    return medians_of(join_path(folder.path(), "run/metrics.jsonl"));
  }

  static void wait_for(const std::vector<std::unique_ptr<harness::ChildProcess>>& children,
                       const std::string& folder) {
    constexpr double kLimitSeconds = 120;
    const double start = monotonic_seconds();
    for (size_t rank = 0; rank < children.size(); ++rank) {
      while (!children[rank]->poll()) {
        if (monotonic_seconds() - start > kLimitSeconds) {
          throw CouldNotRunError(cat("rank ", rank, " did not end within ", kLimitSeconds, " s"));
        }
        usleep(20000);
      }
      if (children[rank]->poll()->exit_code == 0) continue;
      throw CouldNotRunError(
          cat("rank ", rank, " failed: ", read_file(join_path(folder, cat("rank", rank, ".txt")))));
    }
  }

  static Medians medians_of(const std::string& path) {
    std::vector<double> forward, backward, comm, update, step;
    const auto steps = metrics::read_metrics(path).steps;
    for (size_t i = kWarmupSteps; i + 1 < steps.size(); ++i) {  // the last one saves
      const metrics::PhaseTimes& phases = steps[i].phases;
      forward.push_back(phases.data_wait_ms + phases.h2d_ms + phases.forward_ms);
      backward.push_back(phases.backward_ms);
      comm.push_back(phases.comm_ms);
      update.push_back(phases.optimizer_ms + phases.other_ms);
      step.push_back(steps[i].time_ms);
    }
    return {median(forward), median(backward), median(comm), median(update), median(step)};
  }

  estimate::LinkFit fit_link() const {
    std::vector<estimate::AllReduceTime> times;
    for (const int64_t width : {64, 128, 256}) {
      const Job job{width, 1024};
      const double bytes = buckets_of(job, 10).at(0).bytes;
      const Medians measured = train(job, 2, stalls("ddp.bucket", settings_.stall_ms));
      times.push_back({.ranks = 2, .bytes = bytes, .ms = measured.comm_ms});
      std::printf("{\"event\":\"all_reduce\",\"ranks\":2,\"bytes\":%.0f,\"ms\":%.3f}\n", bytes,
                  measured.comm_ms);
      std::fflush(stdout);
    }
    return estimate::fit_link(times);
  }

  static std::string stalls(const std::string& point, double ms) {
    return cat(point, ":1+=stall:", ms / 1e3);
  }

  bool check(const Job& job, const estimate::Cluster& cluster) const {
    const Medians alone = train(job, 1, "");
    estimate::RankStep step = {.forward_ms = alone.forward_ms,
                               .backward_ms = alone.backward_ms,
                               .update_ms = alone.update_ms,
                               .buckets = buckets_of(job, alone.step_ms)};
    for (size_t i = 0; i < step.buckets.size(); ++i) {
      step.buckets[i].ready_ms += static_cast<double>(i + 1) * settings_.stall_ms;
    }
    const double sleep_ms = static_cast<double>(step.buckets.size()) * settings_.stall_ms;
    step.backward_ms += sleep_ms;
    bool is_good = true;
    for (const int64_t ranks : {1, 2, 4}) {
      // One rank has no buckets: the same sleep stands at the end of its backward pass.
      const Medians measured = train(job, ranks,
                                     ranks == 1 ? stalls("train.backward", sleep_ms)
                                                : stalls("ddp.bucket", settings_.stall_ms));
      const estimate::ScalingPrediction predicted =
          estimate::predict_step(step, ranks, cluster, estimate::Algorithm::kRing);
      const double error = predicted.step_ms / measured.step_ms - 1.0;
      std::printf(
          "{\"event\":\"check\",\"width\":%lld,\"buckets\":%zu,\"ranks\":%lld,"
          "\"measured_ms\":%.2f,\"predicted_ms\":%.2f,\"error\":%.4f,\"measured_comm_ms\":%.2f,"
          "\"predicted_exposed_ms\":%.2f,\"predicted_comm_ms\":%.2f,\"alone_ms\":[%.2f,%.2f,%.2f],"
          "\"phases_ms\":[%.2f,%.2f,%.2f]}\n",
          static_cast<long long>(job.width), step.buckets.size(), static_cast<long long>(ranks),
          measured.step_ms, predicted.step_ms, error, measured.comm_ms, predicted.exposed_comm_ms,
          predicted.total_comm_ms, step.forward_ms, step.backward_ms, step.update_ms,
          measured.forward_ms, measured.backward_ms, measured.update_ms);
      std::fflush(stdout);
      is_good = is_good && std::abs(error) <= settings_.bound;
    }
    return is_good;
  }

  Settings settings_;
  LimitedNetwork network_;
};

Settings settings_of(int argc, char** argv) {
  Settings settings;
  if (argc < 2) {
    throw ConfigError(
        "usage: bench_scaling_check TRAINER [mbit=200] [stall_ms=80] [steps=12] [bound=0.10]");
  }
  settings.trainer = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const std::string text = equals < word.size() ? word.substr(equals + 1) : std::string();
    const double value = parse_double(text).value_or(0.0);
    const bool is_known =
        name == "mbit" || name == "stall_ms" || name == "steps" || name == "bound";
    if (!is_known || !(value > 0)) {
      throw ConfigError(cat("unexpected word ", quoted(word),
                            ", expected mbit=, stall_ms=, steps= or bound= and a number above 0"));
    }
    if (name == "mbit") settings.mbit = static_cast<int64_t>(value);
    if (name == "stall_ms") settings.stall_ms = value;
    if (name == "steps") settings.steps = static_cast<int64_t>(value);
    if (name == "bound") settings.bound = value;
  }
  if (settings.steps < static_cast<int64_t>(kWarmupSteps) + 4) {
    throw ConfigError(cat("steps is ", settings.steps, ", must be at least ", kWarmupSteps + 4));
  }
  return settings;
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  try {
    const bool is_good = assay::bench::Checker(assay::bench::settings_of(argc, argv)).run();
    return static_cast<int>(is_good ? assay::ExitCode::kOk : assay::ExitCode::kCheckFailed);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_scaling_check: %s\n", assay::describe_exception(error).c_str());
    return static_cast<int>(assay::exit_code_of(error));
  }
}
