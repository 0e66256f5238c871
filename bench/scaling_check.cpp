// Checks the prediction for several ranks (trainer/estimate/scaling_model.h) against real runs over
// Gloo, each rank on a host of its own whose way out is limited. Backward sleeps before each
// bucket, so that the few cores of one machine do not measure their own contention. Prints JSON
// lines; ends with 6 if a prediction is off by more than the bound, with 8 where nothing can be
// said: no root, no namespaces, or a machine so busy that one rank alone is not repeatable.
//
//   bench_scaling_check TRAINER [mbit=200] [stall_ms=80] [steps=12] [ranks=4] [bound=0.10]
//                       [jobs=128:0.5,192:2,256:1] [fit=64,128,256]
//
// jobs: width of the model and MiB of a bucket. Link: latency and bandwidth are fitted to runs of
// two ranks with one bucket, of models of the widths of `fit`. Step: measured on ranks that run
// alone, each a job of its own, as many at a time as the prediction is for, since these share one
// machine's cores. What is then predicted (several buckets, 1, 2, 4, ... ranks) was not fitted.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sched.h>

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
constexpr size_t kWarmupSteps = 4;
// Two measurements of the same rank alone may differ by half of the error that is allowed.
constexpr double kUnfitFraction = 0.5;

volatile std::sig_atomic_t stop_signal = 0;

// A small GPT: `width` sets how many bytes its gradients have.
struct Job {
  int64_t width = 128;
  double bucket_mb = 1024;  // one bucket
};

struct Settings {
  std::string trainer;
  int64_t mbit = 200;
  double stall_ms = 80;
  int64_t steps = 12;
  int64_t ranks = 4;
  double bound = 0.10;
  std::vector<Job> jobs = {{128, 0.5}, {192, 2.0}, {256, 1.0}};
  std::vector<int64_t> fit_widths = {64, 128, 256};
};

struct Medians {
  double forward_ms = 0;
  double backward_ms = 0;
  double comm_ms = 0;
  double update_ms = 0;
  double step_ms = 0;
  double deviation_ms = 0;  // of the step, without communication
};

// Jobs of one rank each, or one job of several.
enum class Ranks { kAlone, kTogether };

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Checker {
 public:
  explicit Checker(const Settings& settings)
      : settings_(settings), network_(settings.ranks, settings.mbit) {}

  bool run() {
    const estimate::LinkFit fit = fit_link();
    std::printf("{\"event\":\"fit\",\"latency_us\":%.1f,\"gb_per_s\":%.5f,\"worst_error\":%.4f}\n",
                fit.link.latency_us, fit.link.gb_per_s, fit.worst_error_fraction);
    const estimate::Cluster cluster = {.ranks_per_node = 1, .intra = fit.link, .inter = fit.link};
    bool is_good = true;
    for (const Job& job : settings_.jobs) {
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
      throw LaunchError(cat("assay-train estimate said: ", result.output));
    }
    std::vector<estimate::Bucket> buckets;
    for (const auto& bucket : json.at("scaling").at("buckets")) {
      buckets.push_back({bucket.at("bytes").get<double>(), bucket.at("ready_ms").get<double>()});
    }
    return buckets;
  }

  Medians train(const Job& job, int64_t count, Ranks ranks, const std::string& faults) const {
    const bool is_one_job = ranks == Ranks::kTogether;
    const TemporaryFolder folder("assay-scaling");
    std::vector<std::unique_ptr<harness::ChildProcess>> children;
    for (int64_t rank = 0; rank < count; ++rank) {
      Words words = network_.on_host(rank);
      for (const std::string& word : command_of(job, "train")) words.push_back(word);
      const std::string name = is_one_job ? "run" : cat("run", rank);
      words.push_back(cat("--output_dir=", join_path(folder.path(), name)));
      words.push_back(cat("--max_steps=", settings_.steps));
      harness::ChildRequest request;
      request.command = words;
      request.dropped_variables = {"TORCHELASTIC_*", "PET_*", "SLURM_*", "OMPI_*", "PMI_*"};
      request.environment = {{"RANK", cat(is_one_job ? rank : 0)},
                             {"LOCAL_RANK", "0"},
                             {"WORLD_SIZE", cat(is_one_job ? count : 1)},
                             {"LOCAL_WORLD_SIZE", "1"},
                             {"MASTER_ADDR", LimitedNetwork::address(is_one_job ? 0 : rank)},
                             {"MASTER_PORT", "29533"},
                             {"ASSAY_FAULTS", faults}};
      request.log_file = join_path(folder.path(), cat("rank", rank, ".txt"));
      children.push_back(std::make_unique<harness::ChildProcess>(request));
    }
    wait_for(children, folder.path());
    std::vector<std::string> files;
    for (int64_t run = 0; run < (is_one_job ? 1 : count); ++run) {
      const std::string name = is_one_job ? "run" : cat("run", run);
      files.push_back(join_path(folder.path(), join_path(name, "metrics.jsonl")));
    }
    return medians_of(files);
  }

  static void wait_for(const std::vector<std::unique_ptr<harness::ChildProcess>>& children,
                       const std::string& folder) {
    constexpr double kLimitSeconds = 120;
    const double start = monotonic_seconds();
    for (size_t rank = 0; rank < children.size(); ++rank) {
      while (!children[rank]->poll()) {
        if (monotonic_seconds() - start > kLimitSeconds) {
          throw LaunchError(cat("rank ", rank, " did not end within ", kLimitSeconds, " s"));
        }
        if (stop_signal != 0) throw CouldNotRunError(cat("stopped by signal ", stop_signal));
        usleep(20000);
      }
      if (children[rank]->poll()->exit_code == 0) continue;
      throw LaunchError(
          cat("rank ", rank, " failed: ", read_file(join_path(folder, cat("rank", rank, ".txt")))));
    }
  }

  // Over the later steps of all the runs.
  static Medians medians_of(const std::vector<std::string>& files) {
    std::vector<double> forward, backward, comm, update, step, alone;
    for (const std::string& file : files) {
      const auto steps = metrics::read_metrics(file).steps;
      for (size_t i = kWarmupSteps; i + 1 < steps.size(); ++i) {  // the last one saves
        const metrics::PhaseTimes& phases = steps[i].phases;
        forward.push_back(phases.data_wait_ms + phases.h2d_ms + phases.forward_ms);
        backward.push_back(phases.backward_ms);
        comm.push_back(phases.comm_ms);
        update.push_back(phases.optimizer_ms + phases.other_ms);
        step.push_back(steps[i].time_ms);
        alone.push_back(steps[i].time_ms - phases.comm_ms);
      }
    }
    Medians medians = {median(forward), median(backward), median(comm), median(update),
                       median(step)};
    const double middle = median(alone);
    for (double& ms : alone) ms = std::abs(ms - middle);
    medians.deviation_ms = 1.4826 * median(alone);  // as `assay estimate --from-run` reckons it
    return medians;
  }

  estimate::LinkFit fit_link() const {
    std::vector<estimate::AllReduceTime> times;
    for (const int64_t width : settings_.fit_widths) {
      const Job job{width, 1024};
      const double bytes = buckets_of(job, 10).at(0).bytes;
      const Medians measured = measure(job, 2, Ranks::kTogether);
      times.push_back({.ranks = 2, .bytes = bytes, .ms = measured.comm_ms});
      std::printf("{\"event\":\"all_reduce\",\"ranks\":2,\"bytes\":%.0f,\"ms\":%.3f}\n", bytes,
                  measured.comm_ms);
      std::fflush(stdout);
    }
    return estimate::fit_link(times);
  }

  Medians measure(const Job& job, int64_t count, Ranks ranks) const {
    return train(job, count, ranks, cat("ddp.bucket:1+=stall:", settings_.stall_ms / 1e3));
  }

  bool check(const Job& job, const estimate::Cluster& cluster) const {
    bool is_good = true;
    for (int64_t ranks = 1; ranks <= settings_.ranks; ranks *= 2) {
      const Medians alone = measure(job, ranks, Ranks::kAlone);
      estimate::RankStep step = {.forward_ms = alone.forward_ms,
                                 .backward_ms = alone.backward_ms,
                                 .update_ms = alone.update_ms,
                                 .deviation_ms = alone.deviation_ms,
                                 .buckets = buckets_of(job, 10)};
      // The gradients' own times are small beside the sleep before each bucket.
      const double own_ms =
          alone.backward_ms - static_cast<double>(step.buckets.size()) * settings_.stall_ms;
      for (size_t i = 0; i < step.buckets.size(); ++i) {
        const auto place = static_cast<double>(i + 1);
        step.buckets[i].ready_ms =
            place * settings_.stall_ms + own_ms * place / static_cast<double>(step.buckets.size());
      }
      const Medians measured = measure(job, ranks, ranks == 1 ? Ranks::kAlone : Ranks::kTogether);
      const estimate::ScalingPrediction predicted =
          estimate::predict_step(step, ranks, cluster, estimate::Algorithm::kRing);
      const double error = predicted.step_ms / measured.step_ms - 1.0;
      print_check(job, step, measured, predicted, error);
      if (ranks == 1 && std::abs(error) > kUnfitFraction * settings_.bound) {
        throw CouldNotRunError(cat("one rank alone took ", alone.step_ms, " ms a step, then ",
                                   measured.step_ms,
                                   " ms: too many other programs run here. Fix: "
                                   "try again when they have ended"));
      }
      is_good = is_good && std::abs(error) <= settings_.bound;
    }
    return is_good;
  }

  static void print_check(const Job& job, const estimate::RankStep& step, const Medians& measured,
                          const estimate::ScalingPrediction& predicted, double error) {
    const nlohmann::ordered_json line = {
        {"event", "check"},
        {"width", job.width},
        {"bucket_mb", job.bucket_mb},
        {"buckets", step.buckets.size()},
        {"ranks", predicted.ranks},
        {"measured_ms", measured.step_ms},
        {"predicted_ms", predicted.step_ms},
        {"error", error},
        {"measured_exposed_ms", measured.comm_ms},
        {"predicted_exposed_ms", predicted.exposed_comm_ms},
        {"predicted_comm_ms", predicted.total_comm_ms},
        {"straggler_ms", predicted.straggler_ms},
        {"alone_ms", {step.forward_ms, step.backward_ms, step.update_ms}},
        {"phases_ms", {measured.forward_ms, measured.backward_ms, measured.update_ms}}};
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }

  Settings settings_;
  LimitedNetwork network_;
};

// "128:0.5,192:2"
std::vector<Job> jobs_of(const std::string& text) {
  std::vector<Job> jobs;
  for (const std::string& part : split(text, ',')) {
    const size_t colon = std::min(part.find(':'), part.size());
    const std::optional<int64_t> width = parse_int64(part.substr(0, colon));
    const std::optional<double> mb = parse_double(part.substr(std::min(colon + 1, part.size())));
    if (!width || *width < 4 || *width % 4 != 0 || !mb || !(*mb > 0)) {
      throw ConfigError(cat("jobs has ", quoted(part),
                            ", must be WIDTH:MIB such as 128:0.5, the "
                            "width a multiple of 4"));
    }
    jobs.push_back({*width, *mb});
  }
  return jobs;
}

std::vector<int64_t> widths_of(const std::string& text) {
  std::vector<int64_t> widths;
  for (const std::string& part : split(text, ',')) {
    const std::optional<int64_t> width = parse_int64(part);
    if (!width || *width < 4 || *width % 4 != 0) {
      throw ConfigError(cat("fit has ", quoted(part), ", must be multiples of 4 such as 64,128"));
    }
    widths.push_back(*width);
  }
  return widths;
}

void set(Settings& settings, const std::string& word) {
  const size_t equals = std::min(word.find('='), word.size());
  const std::string name = word.substr(0, equals);
  const std::string text = equals < word.size() ? word.substr(equals + 1) : std::string();
  if (name == "jobs") {
    settings.jobs = jobs_of(text);
    return;
  }
  if (name == "fit") {
    settings.fit_widths = widths_of(text);
    return;
  }
  const double value = parse_double(text).value_or(0.0);
  const bool is_known =
      name == "mbit" || name == "stall_ms" || name == "steps" || name == "ranks" || name == "bound";
  if (!is_known || !(value > 0)) {
    throw ConfigError(cat("unexpected word ", quoted(word),
                          ", expected mbit=, stall_ms=, steps=, "
                          "ranks= or bound= and a number above 0, or jobs= or fit="));
  }
  if (name == "mbit") settings.mbit = static_cast<int64_t>(value);
  if (name == "stall_ms") settings.stall_ms = value;
  if (name == "steps") settings.steps = static_cast<int64_t>(value);
  if (name == "ranks") settings.ranks = static_cast<int64_t>(value);
  if (name == "bound") settings.bound = value;
}

Settings settings_of(int argc, char** argv) {
  if (argc < 2) {
    throw ConfigError(
        "usage: bench_scaling_check TRAINER [mbit=200] [stall_ms=80] [steps=12] [ranks=4] "
        "[bound=0.10] [jobs=128:0.5,192:2,256:1] [fit=64,128,256]");
  }
  Settings settings;
  settings.trainer = argv[1];
  for (int i = 2; i < argc; ++i) set(settings, argv[i]);
  if (settings.steps < static_cast<int64_t>(kWarmupSteps) + 4) {
    throw ConfigError(cat("steps is ", settings.steps, ", must be at least ", kWarmupSteps + 4));
  }
  if (settings.ranks < 2 || settings.ranks > 64) {
    throw ConfigError(cat("ranks is ", settings.ranks,
                          ", must be 2 to 64: the link is fitted to "
                          "runs of two"));
  }
  return settings;
}

// Before every other program of the machine, as the ranks are that it starts; they sleep most of
// the time. Where that is not allowed, no network can be made either.
void prepare_process() {
  const sched_param lowest{.sched_priority = 1};
  sched_setscheduler(0, SCHED_RR, &lowest);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    std::signal(number, [](int received) { stop_signal = received; });
  }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  try {
    assay::bench::prepare_process();
    const bool is_good = assay::bench::Checker(assay::bench::settings_of(argc, argv)).run();
    return static_cast<int>(is_good ? assay::ExitCode::kOk : assay::ExitCode::kCheckFailed);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_scaling_check: %s\n", assay::describe_exception(error).c_str());
    return static_cast<int>(assay::exit_code_of(error));
  }
}
