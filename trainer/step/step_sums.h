// What the ranks add up once a step beside the gradients: the loss of every micro-batch, who was
// asked to stop, and which samples were used. One small reduction, started before backward.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace assay::step {

struct SumsShape {
  int64_t num_micro_steps = 1;
  int64_t world_size = 1;
  // Float64 numbers: the losses in the order of the window's samples (micro-step by micro-step,
  // rank by rank) and, with several ranks, one flag for each stop signal and four parts of the ids'
  // sum.
  int64_t size() const;
  int64_t num_losses() const { return num_micro_steps * world_size; }
};

// Independent of order and of who had which id; wraps at 2^64.
uint64_t ids_sum(std::span<const int64_t> ids);

// This rank's addends; zeros where other ranks add. `losses`: one 0-d float64 tensor a micro-step.
at::Tensor make_sums(const SumsShape& shape, int64_t rank, const std::vector<at::Tensor>& losses,
                     int stop_signal, uint64_t sum_of_ids, const c10::Device& device);

struct ReadSums {
  double loss_sum = 0;          // added in the window's order, so the same for any split into ranks
  int stop_signal = 0;          // asked of any rank; 0: none
  uint64_t sum_of_ids = 0;      // over all ranks
  int64_t nonfinite_rank = -1;  // of the first micro-batch whose loss is not finite; -1: none
};
ReadSums read_sums(const SumsShape& shape, const double* numbers);

}  // namespace assay::step
