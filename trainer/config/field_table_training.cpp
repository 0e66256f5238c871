// Rows of the table of settings: batch, precision, optimizer, schedule, checkpoints, logging.
#include "trainer/config/field_rows.h"

namespace assay::config::field_rows {
namespace {

using R = RunConfig;
using enum FieldRole;

void add_training_fields(std::vector<Field>& table) {
  using enum FieldGroup;
  table.push_back(row<&R::batch_size>({.key = "batch_size",
                                       .names = {"batch_size", "per_device_train_batch_size"},
                                       .group = kTraining,
                                       .role = kIdentity,
                                       .help = "Samples per rank and micro-step",
                                       .example = "64",
                                       .limits = kCount}));
  table.push_back(row<&R::gradient_accumulation_steps>(
      {.key = "gradient_accumulation_steps",
       .names = {"gradient_accumulation_steps"},
       .group = kTraining,
       .role = kIdentity,
       .help = "Micro-steps per optimizer step; a shorter last window is an update too",
       .example = "4",
       .limits = kCount}));
  table.push_back(row<&R::label_smoothing_factor>(
      {.key = "label_smoothing_factor",
       .names = {"label_smoothing_factor"},
       .group = kTraining,
       .role = kIdentity,
       .help = "Share of the target spread over all classes; 0: none",
       .example = "0.1",
       .limits = kBelowOne}));
  table.push_back(row<&R::precision>(
      {.key = "precision",
       .names = {"precision"},
       .group = kPlatform,
       .role = kIdentity,
       .help = "Numbers of the forward pass; bf16 is autocast, fp64 is for proofs on the CPU",
       .example = "bf16",
       .choices = {"fp32", "bf16", "fp64"}}));
  table.push_back(row<&R::deterministic>(
      {.key = "deterministic",
       .names = {"deterministic"},
       .group = kPlatform,
       .role = kIdentity,
       .help = "Deterministic kernels only: the same run gives the same bits",
       .example = "true"}));
  table.push_back(row<&R::device>({.key = "device",
                                   .names = {"device"},
                                   .group = kPlatform,
                                   .help = "Where to train; auto: a GPU if one is usable",
                                   .example = "cpu",
                                   .choices = {"auto", "cpu", "cuda"}}));
  table.push_back(
      row<&R::num_threads>({.key = "num_threads",
                            .names = {"num_threads"},
                            .group = kPlatform,
                            .help = "CPU compute threads; 0: the CPUs that this process may use",
                            .example = "2",
                            .limits = {.low = 0, .high = 4096}}));
}

void add_optimizer_fields(std::vector<Field>& table) {
  using enum FieldGroup;
  using O = OptimizerConfig;
  table.push_back(row<&R::optimizer, &O::name>(
      {.key = "optimizer.name",
       .names = {"optim", "optimizer"},
       .group = kOptimizer,
       .role = kIdentity,
       .help = "Optimizer",
       .example = "adamw",
       .choices = {"sgd", "adam", "adamw"},
       .spellings = {{"adamw_torch", "adamw"}, {"adamw_torch_fused", "adamw"}}}));
  table.push_back(row<&R::optimizer, &O::learning_rate>({.key = "optimizer.learning_rate",
                                                         .names = {"learning_rate", "lr"},
                                                         .group = kOptimizer,
                                                         .role = kIdentity,
                                                         .help = "Peak learning rate",
                                                         .example = "0.001",
                                                         .limits = kPositive}));
  table.push_back(
      row<&R::optimizer, &O::weight_decay>({.key = "optimizer.weight_decay",
                                            .names = {"weight_decay"},
                                            .group = kOptimizer,
                                            .role = kIdentity,
                                            .help = "Weight decay, decoupled with adamw; 0: none",
                                            .example = "0.1",
                                            .limits = kNotNegative}));
  table.push_back(row<&R::optimizer, &O::adam_beta1>(
      {.key = "optimizer.adam_beta1",
       .names = {"adam_beta1"},
       .group = kOptimizer,
       .role = kIdentity,
       .help = "Decay of the first moment (adam, adamw); 0: no averaging",
       .example = "0.9",
       .limits = kBelowOne}));
  table.push_back(row<&R::optimizer, &O::adam_beta2>(
      {.key = "optimizer.adam_beta2",
       .names = {"adam_beta2"},
       .group = kOptimizer,
       .role = kIdentity,
       .help = "Decay of the second moment (adam, adamw); 0: no averaging",
       .example = "0.95",
       .limits = kBelowOne}));
  table.push_back(
      row<&R::optimizer, &O::adam_epsilon>({.key = "optimizer.adam_epsilon",
                                            .names = {"adam_epsilon"},
                                            .group = kOptimizer,
                                            .role = kIdentity,
                                            .help = "Added to the denominator (adam, adamw)",
                                            .example = "1e-8",
                                            .limits = kPositive}));
  table.push_back(
      row<&R::optimizer, &O::momentum>({.key = "optimizer.momentum",
                                        .names = {"momentum"},
                                        .group = kOptimizer,
                                        .role = kIdentity,
                                        .help = "Momentum of sgd; 0: plain gradient descent",
                                        .example = "0.9",
                                        .limits = kBelowOne}));
  table.push_back(row<&R::optimizer, &O::nesterov>({.key = "optimizer.nesterov",
                                                    .names = {"nesterov"},
                                                    .group = kOptimizer,
                                                    .role = kIdentity,
                                                    .help = "Nesterov momentum (sgd)",
                                                    .example = "true"}));
  table.push_back(row<&R::optimizer, &O::max_grad_norm>(
      {.key = "optimizer.max_grad_norm",
       .names = {"max_grad_norm"},
       .group = kOptimizer,
       .role = kIdentity,
       .help = "Gradients are scaled down to this norm; 0: no clipping",
       .example = "1.0",
       .limits = kNotNegative}));
}

void add_schedule_fields(std::vector<Field>& table) {
  using enum FieldGroup;
  using S = ScheduleConfig;
  table.push_back(row<&R::schedule, &S::type>(
      {.key = "schedule.type",
       .names = {"lr_scheduler_type", "schedule"},
       .group = kSchedule,
       .role = kIdentity,
       .help = "Learning rate over the steps",
       .example = "cosine",
       .choices = {"constant", "constant_with_warmup", "linear", "cosine", "step", "multistep",
                   "wsd"}}));
  table.push_back(row<&R::schedule, &S::warmup_steps>(
      {.key = "schedule.warmup_steps",
       .names = {"warmup_steps"},
       .group = kSchedule,
       .role = kIdentity,
       .help = "Steps over which the learning rate rises linearly to its peak; 0: none",
       .example = "100",
       .limits = kCountOrNone}));
  table.push_back(row<&R::schedule, &S::min_lr_ratio>(
      {.key = "schedule.min_lr_ratio",
       .names = {"min_lr_ratio"},
       .group = kSchedule,
       .role = kIdentity,
       .help = "Where a decay ends, as a fraction of learning_rate",
       .example = "0.1",
       .limits = kFraction}));
  table.push_back(row<&R::schedule, &S::total_steps>(
      {.key = "schedule.total_steps",
       .group = kSchedule,
       .help = "Step at which a decay ends; left out: max_steps at the first start, then kept",
       .example = "1000",
       .limits = kCount}));
  table.push_back(row<&R::schedule, &S::step_size>(
      {.key = "schedule.step_size",
       .group = kSchedule,
       .role = kIdentity,
       .help = "step: updates after which the learning rate is multiplied by schedule.gamma, again "
               "and again",
       .example = "1000",
       .limits = kCount}));
  table.push_back(row<&R::schedule, &S::milestones>(
      {.key = "schedule.milestones",
       .group = kSchedule,
       .role = kIdentity,
       .help = "multistep: rising numbers of updates, comma separated, at each of which the "
               "learning rate is multiplied by schedule.gamma",
       .example = "32000,48000"}));
  table.push_back(row<&R::schedule, &S::gamma>(
      {.key = "schedule.gamma",
       .group = kSchedule,
       .role = kIdentity,
       .help = "step and multistep: factor of each fall",
       .example = "0.1",
       .limits = {.low = 0, .high = 1, .is_low_open = true}}));
  table.push_back(row<&R::schedule, &S::decay_steps>(
      {.key = "schedule.decay_steps",
       .group = kSchedule,
       .role = kIdentity,
       .help = "wsd: updates over which the learning rate falls at the end, constant before that",
       .example = "100",
       .limits = kCount}));
}

void add_checkpoint_fields(std::vector<Field>& table) {
  using enum FieldGroup;
  using C = CheckpointConfig;
  table.push_back(row<&R::checkpoint, &C::save_steps>(
      {.key = "checkpoint.save_steps",
       .names = {"save_steps"},
       .group = kCheckpoints,
       .help = "Steps between checkpoints; 0: only the last step, which is always saved",
       .example = "500",
       .limits = kCountOrNone}));
  table.push_back(
      row<&R::checkpoint, &C::save_total_limit>({.key = "checkpoint.save_total_limit",
                                                 .names = {"save_total_limit"},
                                                 .group = kCheckpoints,
                                                 .help = "Newest checkpoints to keep; 0: all",
                                                 .example = "2",
                                                 .limits = kCountOrNone}));
  table.push_back(row<&R::resume_from_checkpoint>(
      {.key = "resume_from_checkpoint",
       .names = {"resume_from_checkpoint"},
       .group = kCheckpoints,
       .help = "Checkpoint folder, latest, or auto (the newest valid one, else a new run)",
       .example = "auto",
       .is_of_session = true}));
  table.push_back(row<&R::allow_config_change>(
      {.key = "allow_config_change",
       .names = {"allow_config_change"},
       .group = kCheckpoints,
       .help = "Keys, comma separated, that a resume may change although the run depends on them",
       .example = "optimizer.learning_rate",
       .is_of_session = true}));
}

void add_logging_fields(std::vector<Field>& table) {
  using enum FieldGroup;
  table.push_back(row<&R::logging_steps>(
      {.key = "logging_steps",
       .names = {"logging_steps"},
       .group = kLogging,
       .help = "Steps between lines of progress, metrics.jsonl has every step; 0: no lines",
       .example = "10",
       .limits = kCountOrNone}));
  table.push_back(
      row<&R::eval_steps>({.key = "eval_steps",
                           .names = {"eval_steps"},
                           .group = kLogging,
                           .help = "Steps between evaluations; 0: after the last step only",
                           .example = "100",
                           .limits = kCountOrNone}));
  table.push_back(
      row<&R::log_sample_ids>({.key = "log_sample_ids",
                               .names = {"log_sample_ids"},
                               .group = kLogging,
                               .help = "Write ids-rank<r>.jsonl: the samples that each step used",
                               .example = "true"}));
  table.push_back(row<&R::tensorboard>({.key = "tensorboard",
                                        .names = {"tensorboard"},
                                        .group = kLogging,
                                        .help = "Write TensorBoard event files on rank 0",
                                        .example = "false"}));
}

}  // namespace

void add_training_rows(std::vector<Field>& table) {
  add_training_fields(table);
  add_optimizer_fields(table);
  add_schedule_fields(table);
  add_checkpoint_fields(table);
  add_logging_fields(table);
}

}  // namespace assay::config::field_rows
