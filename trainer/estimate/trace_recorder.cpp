#include "trainer/estimate/trace_recorder.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace assay::estimate {
namespace {

size_t index_of(MemoryKind kind) { return static_cast<size_t>(kind); }

}  // namespace

void TraceRecorder::set_kind(MemoryKind kind) {
  const std::lock_guard lock(mutex_);
  kind_ = kind;
}

void TraceRecorder::set_stage(Stage stage) {
  const std::lock_guard lock(mutex_);
  stage_ = stage;
}

int64_t TraceRecorder::allocate_locked(int64_t bytes, MemoryKind kind) {
  const AllocatorModel::BlockId block = allocator_.allocate(bytes);
  const int64_t id = next_allocation_++;
  allocations_[id] = {kind, block, bytes};
  requested_[index_of(kind)] += bytes;
  live_[index_of(kind)] += allocator_.block_bytes(block);
  if (allocator_.allocated_bytes() > peak_.bytes) peak_ = {allocator_.allocated_bytes(), live_};
  return id;
}

void TraceRecorder::release_locked(int64_t id) {
  const auto found = allocations_.find(id);
  if (found == allocations_.end()) throw InternalError(cat("allocation ", id, " is not there"));
  requested_[index_of(found->second.kind)] -= found->second.bytes;
  live_[index_of(found->second.kind)] -= allocator_.block_bytes(found->second.block);
  allocator_.release(found->second.block);
  allocations_.erase(found);
}

int64_t TraceRecorder::allocate(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  return allocate_locked(bytes, kind_);
}

void TraceRecorder::release(int64_t id) {
  const std::lock_guard lock(mutex_);
  release_locked(id);
}

void TraceRecorder::use_scratch(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  release_locked(allocate_locked(bytes, MemoryKind::kWorkspace));
}

void TraceRecorder::keep_workspace(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  allocate_locked(bytes, MemoryKind::kWorkspace);
}

void TraceRecorder::add_work(std::string name, Arithmetic arithmetic, double flops, double bytes) {
  const std::lock_guard lock(mutex_);
  work_.push_back({std::move(name), stage_, arithmetic, flops, bytes});
}

void TraceRecorder::add_attention(int64_t key_value_elements) {
  const std::lock_guard lock(mutex_);
  if (stage_ == Stage::kForward) attention_elements_ += key_value_elements;
}

int64_t TraceRecorder::attention_elements() const {
  const std::lock_guard lock(mutex_);
  return attention_elements_;
}

size_t TraceRecorder::num_operations() const {
  const std::lock_guard lock(mutex_);
  return work_.size();
}

void TraceRecorder::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = {allocator_.allocated_bytes(), live_};
}

MemoryPeak TraceRecorder::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

BytesByKind TraceRecorder::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

BytesByKind TraceRecorder::requested_bytes() const {
  const std::lock_guard lock(mutex_);
  return requested_;
}

int64_t TraceRecorder::reserved_bytes() const {
  const std::lock_guard lock(mutex_);
  return allocator_.reserved_bytes();
}

std::vector<OperationWork> TraceRecorder::work() const {
  const std::lock_guard lock(mutex_);
  return work_;
}

}  // namespace assay::estimate
