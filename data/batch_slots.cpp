#include "data/batch_slots.h"

#include <cstdlib>
#include <new>

#include "base/error.h"
#include "base/text.h"

namespace assay::data {
namespace {

constexpr size_t kAlignment = 64;  // a cache line; what vector loads and DMA like

class OrdinaryMemory : public HostMemory {
 public:
  void* allocate(size_t bytes) override {
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* pointer = std::aligned_alloc(kAlignment, rounded);
    if (pointer == nullptr) throw std::bad_alloc();
    return pointer;
  }
  void release(void* pointer, size_t) override { std::free(pointer); }
};

}  // namespace

HostMemory& ordinary_memory() {
  static OrdinaryMemory memory;  // has no state
  return memory;
}

namespace loader_detail {

SlotSize slot_size(const SampleSpec& spec, int64_t samples) {
  SlotSize size;
  size_t padded = 0;
  size_t target_bytes = 0;
  const auto count = static_cast<size_t>(samples);
  bool is_too_large = __builtin_mul_overflow(spec.feature_bytes(), count, &size.feature_bytes) ||
                      __builtin_add_overflow(size.feature_bytes, kAlignment - 1, &padded) ||
                      __builtin_mul_overflow(static_cast<size_t>(spec.targets_per_sample), count,
                                             &size.target_count) ||
                      __builtin_mul_overflow(size.target_count, sizeof(int64_t), &target_bytes);
  padded = padded / kAlignment * kAlignment;
  is_too_large = is_too_large || __builtin_add_overflow(padded, target_bytes, &size.total_bytes) ||
                 size.total_bytes > (size_t{1} << 46);  // the address space of a process
  if (is_too_large) {
    throw ConfigError(cat("batch_size is ", samples, ": that many samples of ",
                          spec.feature_bytes(), " bytes do not fit into memory. Fix: lower it"));
  }
  return size;
}

Slot::Slot(HostMemory& source, const SlotSize& size) : memory(source), bytes(size.total_bytes) {
  void* pointer = memory.allocate(bytes);
  features = static_cast<unsigned char*>(pointer);
  const size_t padded = (size.feature_bytes + kAlignment - 1) / kAlignment * kAlignment;
  targets = reinterpret_cast<int64_t*>(features + padded);
}

Slot::~Slot() { memory.release(features, bytes); }

SlotPool::SlotPool(HostMemory& memory, const SlotSize& size, const SampleSpec& spec,
                   int64_t num_slots)
    : num_slots_(num_slots) {
  try {
    for (int64_t i = 0; i < num_slots; ++i) {
      free_.push_back(std::make_unique<Slot>(memory, size));
      free_.back()->sample_feature_bytes = spec.feature_bytes();
    }
  } catch (const std::bad_alloc&) {
    throw DataError(cat("cannot allocate slot ", free_.size() + 1, " of ", num_slots,
                        " of the data loader, ", bytes_text(size.total_bytes),
                        " each. Fix: lower batch_size, num_workers or prefetch_factor"));
  }
}

std::unique_ptr<Slot> SlotPool::acquire(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!is_free_.wait(lock, stop, [this] { return !free_.empty(); })) return nullptr;
  std::unique_ptr<Slot> slot = std::move(free_.back());
  free_.pop_back();
  return slot;
}

std::unique_ptr<Slot> SlotPool::try_acquire() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  std::unique_ptr<Slot> slot = std::move(free_.back());
  free_.pop_back();
  return slot;
}

void SlotPool::put_back(std::unique_ptr<Slot> slot) {
  {
    const std::lock_guard lock(mutex_);
    if (slot->is_delivered) --num_delivered_;
    slot->is_delivered = false;
    free_.push_back(std::move(slot));
  }
  is_free_.notify_one();
}

void SlotPool::mark_delivered(Slot& slot) {
  const std::lock_guard lock(mutex_);
  slot.is_delivered = true;
  ++num_delivered_;
}

int64_t SlotPool::num_delivered() const {
  const std::lock_guard lock(mutex_);
  return num_delivered_;
}

}  // namespace loader_detail

Batch::Batch() = default;

Batch::Batch(Batch&& other) noexcept = default;

Batch& Batch::operator=(Batch&& other) noexcept {
  if (this == &other) return *this;
  if (slot_ != nullptr) pool_->put_back(std::move(slot_));
  window = other.window;
  micro_step = other.micro_step;
  num_micro_steps = other.num_micro_steps;
  step_valid_targets = other.step_valid_targets;
  ids = std::move(other.ids);
  valid_targets = other.valid_targets;
  slot_ = std::move(other.slot_);
  pool_ = std::move(other.pool_);
  return *this;
}

Batch::~Batch() {
  if (slot_ != nullptr) pool_->put_back(std::move(slot_));
}

const unsigned char* Batch::features() const {
  return slot_ == nullptr ? nullptr : slot_->features;
}

const int64_t* Batch::targets() const { return slot_ == nullptr ? nullptr : slot_->targets; }

size_t Batch::feature_bytes() const {
  return slot_ == nullptr ? 0 : ids.size() * slot_->sample_feature_bytes;
}

}  // namespace assay::data
