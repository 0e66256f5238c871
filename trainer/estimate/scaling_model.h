// Predicts how a training step behaves on N ranks from what one rank does: bucketed all-reduce
// overlapped with the backward pass, on links with a latency and a bandwidth. Pure; no torch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace assay::estimate {

// The alpha-beta model of a link (Hockney 1994): a message of S bytes takes latency + S /
// bandwidth.
struct Link {
  double latency_us = 0;   // of one message
  double gb_per_s = 1e30;  // 1e9 bytes a second, each way at once
};

struct Cluster {
  int64_t ranks_per_node = 1;
  Link intra;  // between the ranks of a node; bandwidth of one rank
  Link inter;  // between nodes; bandwidth of a whole node, which its ranks share
};

enum class Algorithm { kRing, kTree, kHierarchical };

// Milliseconds of one all-reduce of `bytes` over `ranks`; 0 for one rank.
//   ring          2 (n-1) messages of S/n each        (Patarasuk & Yuan 2009, sec. 3)
//   tree          2 ceil(log2 n) latencies, 2 S moved (Sanders, Speck & Traff 2009: two trees)
//   hierarchical  reduce-scatter in the node, ring between nodes, all-gather in the node
// Ring and tree over several nodes go at the pace of the slower link.
double all_reduce_ms(Algorithm algorithm, double bytes, int64_t ranks, const Cluster& cluster);
// The fastest of them, as NCCL's tuner chooses.
Algorithm fastest_algorithm(double bytes, int64_t ranks, const Cluster& cluster);

// A bucket of gradients, in the order in which they are reduced.
struct Bucket {
  double bytes = 0;     // that travel
  double ready_ms = 0;  // after the start of the last backward pass
};

struct Gradient {
  double bytes = 0;
  double ready_fraction = 0;  // of the backward pass, in [0, 1]
};
struct BucketRules {
  double cap_bytes = 25.0 * 1024 * 1024;
  double first_cap_bytes = 1024 * 1024;
  double bytes_factor = 1.0;  // what travels against what is stored: 0.5 for bf16 of float32
};
// Fills buckets as c10d's reducer does: gradients in order, a bucket is closed when it holds its
// cap or more. It is ready with its last gradient.
std::vector<Bucket> assign_buckets(std::span<const Gradient> in_ready_order, double backward_ms,
                                   const BucketRules& rules);

// What one rank does in a step without any other.
struct RankStep {
  double forward_ms = 0;   // of one micro-step, with data wait and copies
  double backward_ms = 0;  // of one micro-step
  double update_ms = 0;    // once a step: clipping, optimizer, the rest
  int64_t grad_accum_steps = 1;
  double deviation_ms = 0;      // standard deviation of the whole step's time from step to step
  std::vector<Bucket> buckets;  // reduced in the last micro-step only
};

struct ScalingPrediction {
  int64_t ranks = 1;
  double step_ms = 0;
  double total_comm_ms = 0;    // all reductions
  double exposed_comm_ms = 0;  // end of the last reduction less end of the backward pass
  double straggler_ms = 0;     // waiting for the slowest rank
  double efficiency = 1;       // time of the step on one rank / on these; the batch grows with them
};

// One reduction at a time, each from when its bucket is ready and the one before is done.
// `algorithm`: nothing for the fastest, bucket by bucket. Throws InternalError for ranks < 1 or
// links without bandwidth.
ScalingPrediction predict_step(const RankStep& step, int64_t ranks, const Cluster& cluster,
                               std::optional<Algorithm> algorithm = std::nullopt);

// The smallest number of ranks with an efficiency below the bound: every number to 256, then
// doubling to 2^20. Nothing if there is none.
std::optional<int64_t> ranks_below_efficiency(const RankStep& step, const Cluster& cluster,
                                              double bound);

// Expected largest of n standard normal values, by integrating n x phi(x) Phi(x)^(n-1)
// (David & Nagaraja 2003, sec. 3.1). Near sqrt(2 ln n) for large n.
double expected_largest_normal(int64_t n);

}  // namespace assay::estimate
