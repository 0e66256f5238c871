// Moves a micro-batch to the device and turns pixels into normalised floats there.
#pragma once

#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include "data/loader.h"

namespace assay::step {

struct DeviceBatch {
  at::Tensor features;  // images: [B, C, H, W] of the run's float type; tokens: [B, T] int64
  at::Tensor targets;   // [B] or [B, T] int64
};

// The batch's slot must stay alive until the device has done the copies (pinned memory, CUDA); on
// the CPU token and target tensors point into the slot.
class BatchMover {
 public:
  BatchMover(const data::SampleSpec& spec, const c10::Device& device, c10::ScalarType float_type);
  DeviceBatch move(const data::Batch& batch) const;

 private:
  data::SampleSpec spec_;
  c10::Device device_;
  c10::ScalarType float_type_;
  at::Tensor mean_;   // [C, 1, 1], in units of 1/255
  at::Tensor scale_;  // 1 / stddev
};

// Keeps the newest batch's slot until the device has copied it out, and frees the one before. So at
// most one slot is held while the next batch is waited for. On the CPU, where tensors point into
// the slot, it is held until the next batch is there. Main thread only.
class SlotKeeper {
 public:
  explicit SlotKeeper(const c10::Device& device);
  // Call after the batch's copies are enqueued. Waits for the copies of the batch before it.
  void keep(data::Batch batch);
  void release();  // waits for the copies of the newest one

 private:
  c10::Device device_;
  std::optional<data::Batch> batch_;
  std::unique_ptr<c10::Event> copied_;
};

// Slots in page-locked memory, so that copies to the device can be asynchronous.
class PinnedMemory final : public data::HostMemory {
 public:
  PinnedMemory();
  ~PinnedMemory() override;
  void* allocate(size_t bytes) override;
  void release(void* pointer, size_t bytes) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::step
