// Records that betray mix-ups: every field has a value of its own.
#pragma once

#include "trainer/metrics/step_record.h"

namespace assay::metrics {

inline StepRecord step_record(int64_t step) {
  StepRecord record;
  record.step = step;
  record.epoch = 0.125 * static_cast<double>(step);
  record.updates = step - 1;
  record.skipped = 1;
  record.loss = 2.302585092994046;
  record.learning_rate = 0.1;
  record.grad_norm = 1.0 / 3.0;
  record.loss_scale = 65536;
  record.samples_seen = 64 * step;
  record.tokens_seen = 8192 * step;
  record.time_ms = 36;
  record.phases = {.data_wait_ms = 1,
                   .h2d_ms = 2,
                   .forward_ms = 3,
                   .backward_ms = 4,
                   .comm_ms = 5,
                   .optimizer_ms = 6,
                   .checkpoint_ms = 7,
                   .other_ms = 8};
  record.memory = {.allocated_bytes = 11,
                   .peak_allocated_bytes = 12,
                   .reserved_bytes = 13,
                   .host_rss_bytes = 5000000000};
  record.ids_digest = "abc0123";
  return record;
}

inline EvalRecord eval_record(int64_t step) {
  EvalRecord record;
  record.step = step;
  record.epoch = 1.5;
  record.loss = 0.07;
  record.accuracy = 0.9732441471571907;
  record.samples = 299;
  record.targets = 300;
  record.time_ms = 12.5;
  return record;
}

}  // namespace assay::metrics
