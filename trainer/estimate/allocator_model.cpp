#include "trainer/estimate/allocator_model.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace assay::estimate {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kMinBlock = 512;
constexpr int64_t kSmallRequest = kMiB;
constexpr int64_t kSmallSegment = 2 * kMiB;
constexpr int64_t kMiddleRequest = 10 * kMiB;
constexpr int64_t kMiddleSegment = 20 * kMiB;
constexpr int64_t kLargeRounding = 2 * kMiB;

int64_t round_up(int64_t bytes, int64_t step) { return (bytes + step - 1) / step * step; }

int64_t segment_bytes(int64_t block_bytes) {
  if (block_bytes <= kSmallRequest) return kSmallSegment;
  if (block_bytes < kMiddleRequest) return kMiddleSegment;
  return round_up(block_bytes, kLargeRounding);
}

}  // namespace

AllocatorModel::BlockId AllocatorModel::allocate(int64_t bytes) {
  if (bytes < 0) throw InternalError(cat("an allocation of ", bytes, " bytes"));
  if (bytes == 0) return 0;
  const int64_t rounded = round_up(bytes, kMinBlock);
  const BlockId id = take_or_reserve(rounded);
  Block& block = blocks_.at(id);
  block.is_free = false;
  const int64_t rest = block.bytes - rounded;
  if (block.is_small ? rest >= kMinBlock : rest > kSmallRequest) split(id, rounded);
  allocated_bytes_ += blocks_.at(id).bytes;
  peak_allocated_bytes_ = std::max(peak_allocated_bytes_, allocated_bytes_);
  return id;
}

AllocatorModel::BlockId AllocatorModel::take_or_reserve(int64_t bytes) {
  const bool is_small = bytes <= kSmallRequest;
  FreeList& list = free_list(is_small);
  const auto fit = list.lower_bound({bytes, 0});
  if (fit != list.end()) {
    const BlockId id = fit->second;
    list.erase(fit);
    return id;
  }
  const BlockId id = next_id_++;
  const int64_t segment = segment_bytes(bytes);
  blocks_[id] = {.bytes = segment, .is_small = is_small};
  reserved_bytes_ += segment;
  return id;
}

void AllocatorModel::split(BlockId id, int64_t bytes) {
  const BlockId rest_id = next_id_++;
  Block& block = blocks_.at(id);
  blocks_[rest_id] = {.bytes = block.bytes - bytes,
                      .is_small = block.is_small,
                      .is_free = true,
                      .before = id,
                      .after = block.after};
  if (block.after != 0) blocks_.at(block.after).before = rest_id;
  block.after = rest_id;
  block.bytes = bytes;
  free_list(block.is_small).insert({blocks_.at(rest_id).bytes, rest_id});
}

void AllocatorModel::release(BlockId id) {
  if (id == 0) return;
  const auto found = blocks_.find(id);
  if (found == blocks_.end() || found->second.is_free) {
    throw InternalError(cat("block ", id, " is released, but is not allocated"));
  }
  allocated_bytes_ -= found->second.bytes;
  found->second.is_free = true;
  merge_with_next(id);
  const BlockId before = found->second.before;
  if (before != 0 && blocks_.at(before).is_free) {
    free_list(blocks_.at(before).is_small).erase({blocks_.at(before).bytes, before});
    blocks_.at(before).bytes += blocks_.at(id).bytes;
    blocks_.at(before).after = blocks_.at(id).after;
    if (blocks_.at(id).after != 0) blocks_.at(blocks_.at(id).after).before = before;
    blocks_.erase(id);
    id = before;
  }
  const Block& block = blocks_.at(id);
  free_list(block.is_small).insert({block.bytes, id});
}

void AllocatorModel::merge_with_next(BlockId id) {
  Block& block = blocks_.at(id);
  if (block.after == 0 || !blocks_.at(block.after).is_free) return;
  const BlockId next = block.after;
  free_list(block.is_small).erase({blocks_.at(next).bytes, next});
  block.bytes += blocks_.at(next).bytes;
  block.after = blocks_.at(next).after;
  if (block.after != 0) blocks_.at(block.after).before = id;
  blocks_.erase(next);
}

int64_t AllocatorModel::block_bytes(BlockId id) const {
  if (id == 0) return 0;
  const auto found = blocks_.find(id);
  if (found == blocks_.end()) throw InternalError(cat("block ", id, " does not exist"));
  return found->second.bytes;
}

}  // namespace assay::estimate
