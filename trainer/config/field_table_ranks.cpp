// Rows of the table of settings: several ranks.
#include "trainer/config/field_rows.h"

namespace assay::config::field_rows {
namespace {

using R = RunConfig;
using D = DdpConfig;
using enum FieldRole;
using enum FieldGroup;

constexpr Limits kBucketMb{.low = 0.0, .high = 4096.0, .is_low_open = true};
constexpr Limits kSeconds{.low = 1.0, .high = 86400.0};

void add_reduction_fields(std::vector<Field>& table) {
  table.push_back(row<&R::ddp, &D::backend>(
      {.key = "ddp.backend",
       .names = {"ddp_backend"},
       .group = kRanks,
       .help =
           "What carries tensors between ranks; auto: nccl where each rank has a GPU of its own",
       .example = "gloo",
       .choices = {"auto", "nccl", "gloo"}}));
  table.push_back(row<&R::ddp, &D::bucket_mb>({.key = "ddp.bucket_mb",
                                               .names = {"ddp_bucket_cap_mb"},
                                               .group = kRanks,
                                               .help = "MiB of gradients that are reduced at once",
                                               .example = "25",
                                               .limits = kBucketMb}));
  table.push_back(
      row<&R::ddp, &D::first_bucket_mb>({.key = "ddp.first_bucket_mb",
                                         .names = {"ddp_first_bucket_mb"},
                                         .group = kRanks,
                                         .help = "MiB of the bucket that is reduced first",
                                         .example = "1",
                                         .limits = kBucketMb}));
  table.push_back(row<&R::ddp, &D::reduce_dtype>(
      {.key = "ddp.reduce_dtype",
       .names = {"ddp_reduce_dtype"},
       .group = kRanks,
       .role = kIdentity,
       .help = "Numbers that travel between ranks; bf16 halves the bytes and rounds the sums",
       .example = "bf16",
       .choices = {"full", "bf16"}}));
  table.push_back(row<&R::ddp, &D::static_graph>(
      {.key = "ddp.static_graph",
       .names = {"ddp_static_graph"},
       .group = kRanks,
       .help = "The same parameters take part in every step, possibly more than once",
       .example = "true"}));
  table.push_back(row<&R::ddp, &D::sync_batch_norm>(
      {.key = "ddp.sync_batch_norm",
       .names = {"sync_batch_norm"},
       .group = kRanks,
       .role = kIdentity,
       .help = "Batch norm takes mean and variance over all ranks' images, not each rank's own",
       .example = "true"}));
  table.push_back(row<&R::ddp, &D::shard_optimizer>(
      {.key = "ddp.shard_optimizer",
       .names = {"ddp_shard_optimizer", "zero1"},
       .group = kRanks,
       .help = "Each rank keeps the optimizer's state of its share of the weights only (ZeRO-1)",
       .example = "true"}));
}

void add_guard_fields(std::vector<Field>& table) {
  table.push_back(row<&R::ddp, &D::check_replicas_steps>(
      {.key = "ddp.check_replicas_steps",
       .names = {"check_replicas_steps"},
       .group = kRanks,
       .help = "Steps between comparisons of the ranks' states; 0: at the start only",
       .example = "100",
       .limits = kCountOrNone}));
  table.push_back(
      row<&R::ddp, &D::timeout_seconds>({.key = "ddp.timeout_seconds",
                                         .names = {"ddp_timeout"},
                                         .group = kRanks,
                                         .help = "Seconds that a step may wait for another rank",
                                         .example = "600",
                                         .limits = kSeconds}));
  table.push_back(row<&R::ddp, &D::join_timeout_seconds>(
      {.key = "ddp.join_timeout_seconds",
       .names = {"ddp_join_timeout"},
       .group = kRanks,
       .help = "Seconds to wait at the start while no further rank arrives",
       .example = "30",
       .limits = kSeconds}));
}

}  // namespace

void add_rank_rows(std::vector<Field>& table) {
  add_reduction_fields(table);
  add_guard_fields(table);
}

}  // namespace assay::config::field_rows
