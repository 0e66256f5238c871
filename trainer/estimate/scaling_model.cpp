#include "trainer/estimate/scaling_model.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace assay::estimate {
namespace {

constexpr double kMsPerUs = 1e-3;

// 1 GB/s is 1e6 bytes a millisecond.
double transfer_ms(double bytes, const Link& link) { return bytes / (link.gb_per_s * 1e6); }

double ring_ms(double bytes, int64_t ranks, const Link& link) {
  const auto n = static_cast<double>(ranks);
  const double messages = 2.0 * (n - 1.0);
  return messages * (link.latency_us * kMsPerUs + transfer_ms(bytes / n, link));
}

double tree_ms(double bytes, int64_t ranks, const Link& link) {
  const double levels = std::ceil(std::log2(static_cast<double>(ranks)));
  return 2.0 * levels * link.latency_us * kMsPerUs + 2.0 * transfer_ms(bytes, link);
}

bool spans_nodes(int64_t ranks, const Cluster& cluster) { return ranks > cluster.ranks_per_node; }

// Each message waits for the slower of the links that carry messages at the same time.
Link slower_link(int64_t ranks, const Cluster& cluster) {
  if (!spans_nodes(ranks, cluster)) return cluster.intra;
  if (cluster.ranks_per_node == 1) return cluster.inter;
  return {.latency_us = std::max(cluster.intra.latency_us, cluster.inter.latency_us),
          .gb_per_s = std::min(cluster.intra.gb_per_s, cluster.inter.gb_per_s)};
}

double hierarchical_ms(double bytes, int64_t ranks, const Cluster& cluster) {
  if (!spans_nodes(ranks, cluster)) return ring_ms(bytes, ranks, cluster.intra);
  const int64_t nodes = (ranks + cluster.ranks_per_node - 1) / cluster.ranks_per_node;
  // Scatter and gather are half a ring each. Between nodes every local rank has its share of the
  // bytes and of the bandwidth.
  return ring_ms(bytes, cluster.ranks_per_node, cluster.intra) +
         ring_ms(bytes, nodes, cluster.inter);
}

constexpr double kSqrt2 = 1.4142135623730951;
constexpr double kSqrt2Pi = 2.5066282746310002;

double normal_density(double x) { return std::exp(-0.5 * x * x) / kSqrt2Pi; }
double normal_distribution(double x) { return 0.5 * std::erfc(-x / kSqrt2); }

}  // namespace

double all_reduce_ms(Algorithm algorithm, double bytes, int64_t ranks, const Cluster& cluster) {
  if (ranks < 1 || cluster.ranks_per_node < 1) {
    throw InternalError(cat("an all-reduce over ", ranks, " ranks, ", cluster.ranks_per_node,
                            " a node; both must be at least 1"));
  }
  if (!(cluster.intra.gb_per_s > 0) || !(cluster.inter.gb_per_s > 0)) {
    throw InternalError(cat("links of ", cluster.intra.gb_per_s, " and ", cluster.inter.gb_per_s,
                            " GB/s; both must be above 0"));
  }
  if (ranks == 1) return 0.0;
  switch (algorithm) {
    case Algorithm::kRing:
      return ring_ms(bytes, ranks, slower_link(ranks, cluster));
    case Algorithm::kTree:
      return tree_ms(bytes, ranks, slower_link(ranks, cluster));
    case Algorithm::kHierarchical:
      return hierarchical_ms(bytes, ranks, cluster);
  }
  throw InternalError("all_reduce_ms: an algorithm is missing from the switch");
}

Algorithm fastest_algorithm(double bytes, int64_t ranks, const Cluster& cluster) {
  Algorithm best = Algorithm::kRing;
  double best_ms = all_reduce_ms(best, bytes, ranks, cluster);
  for (const Algorithm other : {Algorithm::kTree, Algorithm::kHierarchical}) {
    const double ms = all_reduce_ms(other, bytes, ranks, cluster);
    if (ms >= best_ms) continue;
    best = other;
    best_ms = ms;
  }
  return best;
}

std::vector<Bucket> assign_buckets(std::span<const Gradient> in_ready_order, double backward_ms,
                                   const BucketRules& rules) {
  std::vector<Bucket> buckets;
  Bucket open;
  double stored = 0;
  const auto close = [&] {
    buckets.push_back(open);
    open = {};
    stored = 0;
  };
  for (const Gradient& gradient : in_ready_order) {
    stored += gradient.bytes;
    open.bytes += gradient.bytes * rules.bytes_factor;
    open.ready_ms = std::max(open.ready_ms, gradient.ready_fraction * backward_ms);
    if (stored >= (buckets.empty() ? rules.first_cap_bytes : rules.cap_bytes)) close();
  }
  if (stored > 0) close();
  return buckets;
}

ScalingPrediction predict_step(const RankStep& step, int64_t ranks, const Cluster& cluster,
                               std::optional<Algorithm> algorithm) {
  ScalingPrediction prediction;
  prediction.ranks = ranks;
  double lane_free_ms = 0;
  for (const Bucket& bucket : step.buckets) {
    const Algorithm chosen =
        algorithm ? *algorithm : fastest_algorithm(bucket.bytes, ranks, cluster);
    const double ms = all_reduce_ms(chosen, bucket.bytes, ranks, cluster);
    prediction.total_comm_ms += ms;
    if (ranks > 1) lane_free_ms = std::max(lane_free_ms, bucket.ready_ms) + ms;
  }
  prediction.exposed_comm_ms = std::max(0.0, lane_free_ms - step.backward_ms);
  prediction.straggler_ms = step.deviation_ms * expected_largest_normal(ranks);
  const double alone_ms =
      static_cast<double>(step.grad_accum_steps) * (step.forward_ms + step.backward_ms) +
      step.update_ms;
  prediction.step_ms = alone_ms + prediction.exposed_comm_ms + prediction.straggler_ms;
  prediction.efficiency = prediction.step_ms > 0 ? alone_ms / prediction.step_ms : 1.0;
  return prediction;
}

std::optional<int64_t> ranks_below_efficiency(const RankStep& step, const Cluster& cluster,
                                              double bound) {
  constexpr int64_t kEveryUntil = 256;
  constexpr int64_t kLast = int64_t{1} << 20;
  for (int64_t ranks = 2; ranks <= kLast; ranks = ranks < kEveryUntil ? ranks + 1 : ranks * 2) {
    if (predict_step(step, ranks, cluster).efficiency < bound) return ranks;
  }
  return std::nullopt;
}

double expected_largest_normal(int64_t n) {
  if (n < 1) throw InternalError(cat("the largest of ", n, " values"));
  if (n == 1) return 0.0;
  // Simpson's rule; beyond 9 standard deviations the density is below 1e-18.
  constexpr int kIntervals = 1800;
  constexpr double kBound = 9.0;
  constexpr double kWidth = 2.0 * kBound / kIntervals;
  const auto count = static_cast<double>(n);
  double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const double x = -kBound + kWidth * i;
    const double weight = i == 0 || i == kIntervals ? 1.0 : (i % 2 == 1 ? 4.0 : 2.0);
    const double power = std::pow(normal_distribution(x), count - 1.0);
    sum += weight * x * normal_density(x) * power;
  }
  return count * sum * kWidth / 3.0;
}

}  // namespace assay::estimate
