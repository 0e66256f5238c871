#include "trainer/estimate/scaling_plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "trainer/estimate/link_fit.h"

namespace assay::estimate {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
// Without a measurement. NCCL counts 6.3 us for a message over NVLink in its simple protocol and
// about 20 us over a network (tuning constants in nccl/src/graph/tuning.cc).
constexpr double kIntraLatencyUs = 6.3;
constexpr double kInterLatencyUs = 20.0;
constexpr double kInterGbPerS = 12.5;  // one network port of 100 Gbit/s a host
constexpr int64_t kRanksPerNode = 8;

// The times of the step on one rank, without buckets.
RankStep timed_step(const StepTrace& trace, const config::RunConfig& config,
                    const EstimateOptions& options, const Card& card, const MeasuredRun* measured,
                    std::string* source) {
  RankStep step;
  step.grad_accum_steps = config.gradient_accumulation_steps;
  if (measured != nullptr) {
    step.forward_ms = measured->step.forward_ms;
    step.backward_ms = measured->step.backward_ms;
    step.update_ms = measured->step.update_ms;
    step.deviation_ms = measured->step.deviation_ms;
    *source = cat("medians of ", measured->step.steps, " steps of the run of --from-run");
  } else {
    const StepBound bound = step_bound(trace, card);
    step.forward_ms = bound.forward_ms;
    step.backward_ms = bound.backward_ms;
    step.update_ms = bound.update_ms;
    *source = cat("the least time on ", card.name,
                  ", which no run reaches: --step-ms or --from-run give a measured one");
  }
  if (options.deviation_ms) step.deviation_ms = *options.deviation_ms;
  if (!options.step_ms) return step;
  const double micro_ms = step.forward_ms + step.backward_ms;
  const double all_ms = static_cast<double>(step.grad_accum_steps) * micro_ms + step.update_ms;
  const double factor = all_ms > 0 ? *options.step_ms / all_ms : 0.0;
  step.forward_ms *= factor;
  step.backward_ms *= factor;
  step.update_ms *= factor;
  *source = cat("--step-ms ", *options.step_ms, ", shared out as ",
                measured != nullptr ? "in the run" : cat("on ", card.name));
  return step;
}

std::vector<AllReduceTime> read_times(const std::string& file) {
  std::vector<AllReduceTime> times;
  try {
    times = all_reduce_times_from_text(read_file(file), file);
  } catch (const FileError& error) {
    throw ConfigError(cat("--all-reduce: ", error.what(), ". Fix: name a file of measured times"));
  }
  if (!times.empty()) return times;
  throw ConfigError(cat("--all-reduce ", quoted(file),
                        " holds no times. Fix: write lines such as "
                        "{\"ranks\":4,\"bytes\":1048576,\"ms\":1.25}"));
}

Cluster cluster_of(const EstimateOptions& options, const Card& card, std::string* source) {
  Cluster cluster;
  cluster.ranks_per_node = options.ranks_per_node.value_or(kRanksPerNode);
  cluster.intra = {options.latency_us.value_or(kIntraLatencyUs),
                   options.link_gb_per_s.value_or(card.link_gb_per_s)};
  cluster.inter = {options.inter_latency_us.value_or(kInterLatencyUs),
                   options.inter_gb_per_s.value_or(kInterGbPerS)};
  *source = "options and data sheets, not measured";
  const std::string& file = options.all_reduce_file;
  if (file.empty()) return cluster;
  const std::vector<AllReduceTime> times = read_times(file);
  // A ring over several hosts went at the pace of what is between them.
  const bool is_inter = std::any_of(times.begin(), times.end(), [&](const AllReduceTime& time) {
    return time.ranks > cluster.ranks_per_node;
  });
  if (is_inter ? options.inter_gb_per_s || options.inter_latency_us
               : options.link_gb_per_s || options.latency_us) {
    throw ConfigError(cat(
        is_inter ? "--inter-gb-per-s and --inter-latency-us" : "--link-gb-per-s and --latency-us",
        " contradict the all-reduce times of ", escaped(file),
        ". Fix: leave them out, or leave the times out"));
  }
  const LinkFit fit = fit_link(times);
  (is_inter ? cluster.inter : cluster.intra) = fit.link;
  *source = cat("between ", is_inter ? "hosts" : "ranks of a host", " fitted to ", times.size(),
                " times of ", escaped(file), ", worst error ",
                static_cast<int64_t>(100 * fit.worst_error_fraction + 0.5), " %");
  return cluster;
}

// Of the rank that needs most.
int64_t rank_peak_bytes(const StepTrace& trace, const config::RunConfig& config, int64_t ranks,
                        const LargestShare& largest_share) {
  int64_t peak = peak_bytes(trace);
  if (ranks == 1) return peak;
  const auto of_kind = [&](MemoryKind kind) { return trace.state[static_cast<size_t>(kind)]; };
  // Before the first step the reducer holds its buckets twice, while it puts them in order.
  peak = std::max(peak, trace.load_bytes + of_kind(MemoryKind::kGradients));
  if (config.ddp.shard_optimizer) {
    const auto optimizer = static_cast<double>(of_kind(MemoryKind::kOptimizer));
    peak -= static_cast<int64_t>(optimizer * (1.0 - largest_share(ranks)));
  }
  // Compressed copies of the gradients on their way.
  if (config.ddp.reduce_dtype == "bf16") peak += of_kind(MemoryKind::kGradients) / 2;
  return peak;
}

}  // namespace

Scaling plan_scaling(const StepTrace& trace, const config::RunConfig& config,
                     const EstimateOptions& options, const Card& card, const MeasuredRun* measured,
                     const LargestShare& largest_share) {
  Scaling scaling;
  scaling.step = timed_step(trace, config, options, card, measured, &scaling.step_source);
  scaling.cluster = cluster_of(options, card, &scaling.link_source);
  const std::vector<double> fractions = ready_fractions(trace, card);
  std::vector<Gradient> gradients;
  for (size_t i = 0; i < trace.ready.size(); ++i) {
    gradients.push_back(
        {.bytes = static_cast<double>(trace.ready[i].bytes), .ready_fraction = fractions[i]});
  }
  const bool is_compressed = config.ddp.reduce_dtype == "bf16";
  scaling.step.buckets = assign_buckets(
      gradients, scaling.step.backward_ms,
      {.cap_bytes = config.ddp.bucket_mb * kMiB,
       .first_cap_bytes = config.ddp.first_bucket_mb * kMiB,
       .bytes_factor =
           is_compressed ? 2.0 / static_cast<double>(trace.weight_element_bytes) : 1.0});
  for (const int64_t ranks : options.worlds) {
    scaling.rows.push_back({predict_step(scaling.step, ranks, scaling.cluster),
                            rank_peak_bytes(trace, config, ranks, largest_share)});
  }
  scaling.below_bound = ranks_below_efficiency(scaling.step, scaling.cluster, kEfficiencyBound);
  return scaling;
}

}  // namespace assay::estimate
