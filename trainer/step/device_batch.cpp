#include "trainer/step/device_batch.h"

#include <mutex>
#include <unordered_map>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/torch.h>

namespace assay::step {
namespace {

at::Tensor channel_tensor(const std::vector<float>& values, const c10::Device& device,
                          c10::ScalarType type) {
  return torch::tensor(values, torch::kFloat32)
      .to(device, type)
      .reshape({static_cast<int64_t>(values.size()), 1, 1});
}

at::Tensor borrow(const void* bytes, std::vector<int64_t> shape, c10::ScalarType type) {
  // from_blob wants a mutable pointer; nothing writes through it.
  return torch::from_blob(const_cast<void*>(bytes), shape, torch::TensorOptions().dtype(type));
}

}  // namespace

BatchMover::BatchMover(const data::SampleSpec& spec, const c10::Device& device,
                       c10::ScalarType float_type)
    : spec_(spec), device_(device), float_type_(float_type) {
  if (spec.feature_type != data::FeatureType::kUint8) return;
  mean_ = channel_tensor(spec.mean, device, float_type);
  scale_ = channel_tensor(spec.stddev, device, float_type).reciprocal();
}

DeviceBatch BatchMover::move(const data::Batch& batch) const {
  const auto count = static_cast<int64_t>(batch.ids.size());
  std::vector<int64_t> feature_shape{count};
  feature_shape.insert(feature_shape.end(), spec_.feature_shape.begin(), spec_.feature_shape.end());
  const bool is_image = spec_.feature_type == data::FeatureType::kUint8;
  const at::Tensor host_features =
      borrow(batch.features(), feature_shape, is_image ? torch::kUInt8 : torch::kInt64);
  const at::Tensor host_targets =
      borrow(batch.targets(),
             is_image ? std::vector<int64_t>{count}
                      : std::vector<int64_t>{count, spec_.targets_per_sample},
             torch::kInt64);
  DeviceBatch moved;
  moved.features = host_features.to(device_, /*non_blocking=*/true);
  moved.targets = host_targets.to(device_, /*non_blocking=*/true);
  if (is_image) {
    moved.features = moved.features.to(float_type_).div_(255.0).sub_(mean_).mul_(scale_);
  }
  return moved;
}

SlotKeeper::SlotKeeper(const c10::Device& device) : device_(device) {}

void SlotKeeper::keep(data::Batch batch) {
  std::unique_ptr<c10::Event> copied;
  if (device_.is_cuda()) {
    copied = std::make_unique<c10::Event>(device_.type());
    copied->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  }
  release();
  batch_.emplace(std::move(batch));
  copied_ = std::move(copied);
}

void SlotKeeper::release() {
  if (copied_) copied_->synchronize();
  batch_.reset();
}

struct PinnedMemory::State {
  std::mutex mutex;
  std::unordered_map<void*, at::Tensor> blocks;
};

PinnedMemory::PinnedMemory() : state_(std::make_unique<State>()) {}
PinnedMemory::~PinnedMemory() = default;

void* PinnedMemory::allocate(size_t bytes) {
  at::Tensor block = torch::empty({static_cast<int64_t>(bytes)},
                                  torch::TensorOptions().dtype(torch::kUInt8).pinned_memory(true));
  void* pointer = block.mutable_data_ptr();
  const std::lock_guard lock(state_->mutex);
  state_->blocks.emplace(pointer, std::move(block));
  return pointer;
}

void PinnedMemory::release(void* pointer, size_t) {
  const std::lock_guard lock(state_->mutex);
  state_->blocks.erase(pointer);
}

}  // namespace assay::step
