#include "trainer/step/step_sums.h"

#include <array>
#include <cmath>
#include <csignal>

#include <torch/torch.h>

#include "data/mix64.h"

namespace assay::step {
namespace {

// In the order in which the first one found is obeyed.
constexpr std::array<int, 3> kSignals = {SIGTERM, SIGINT, SIGUSR1};
// 16 bits each: sums over 2^37 ranks would still be exact in a double.
constexpr size_t kIdParts = 4;
constexpr uint64_t kPartMask = 0xffff;
constexpr size_t kTail = kSignals.size() + kIdParts;

}  // namespace

int64_t SumsShape::size() const {
  return num_losses() + (world_size > 1 ? static_cast<int64_t>(kTail) : 0);
}

uint64_t ids_sum(std::span<const int64_t> ids) {
  uint64_t sum = 0;
  for (const int64_t id : ids) sum += data::mix64(static_cast<uint64_t>(id) + data::kMixIncrement);
  return sum;
}

at::Tensor make_sums(const SumsShape& shape, int64_t rank, const std::vector<at::Tensor>& losses,
                     int stop_signal, uint64_t sum_of_ids, const c10::Device& device) {
  const at::Tensor own = torch::stack(losses);  // [micro-steps]
  if (shape.world_size == 1) return own;
  std::array<double, kTail> tail{};
  for (size_t i = 0; i < kSignals.size(); ++i) tail[i] = stop_signal == kSignals[i] ? 1.0 : 0.0;
  for (size_t i = 0; i < kIdParts; ++i) {
    tail[kSignals.size() + i] = static_cast<double>((sum_of_ids >> (16 * i)) & kPartMask);
  }
  const auto options = torch::TensorOptions().dtype(torch::kFloat64);
  at::Tensor places =
      torch::zeros({shape.num_micro_steps, shape.world_size}, options.device(device));
  places.select(1, rank).copy_(own);
  const at::Tensor host_tail =
      torch::tensor(c10::ArrayRef<double>(tail.data(), tail.size()), options);
  return torch::cat({places.reshape({-1}), host_tail.to(device, /*non_blocking=*/true)});
}

ReadSums read_sums(const SumsShape& shape, const double* numbers) {
  ReadSums read;
  const int64_t num_losses = shape.num_losses();
  for (int64_t i = 0; i < num_losses; ++i) {
    read.loss_sum += numbers[i];
    if (read.nonfinite_rank < 0 && !std::isfinite(numbers[i])) {
      read.nonfinite_rank = i % shape.world_size;
    }
  }
  if (shape.world_size == 1) return read;
  const double* tail = numbers + num_losses;
  for (size_t i = kSignals.size(); i-- > 0;) {
    if (tail[i] > 0) read.stop_signal = kSignals[i];
  }
  for (size_t i = 0; i < kIdParts; ++i) {
    const auto part = static_cast<uint64_t>(tail[kSignals.size() + i]);
    read.sum_of_ids += part << (16 * i);
  }
  return read;
}

}  // namespace assay::step
