// How LibTorch's CUDA caching allocator turns requests into blocks and segments, without a device:
// what a run's peak_allocated_bytes and reserved_bytes will be. No torch.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace assay::estimate {

// The rules of c10/cuda/CUDACachingAllocator.cpp (LibTorch 2.11, default settings, one stream):
// requests are rounded to 512 bytes; up to 1 MiB they are cut from segments of 2 MiB, below 10 MiB
// from segments of 20 MiB, larger ones get segments of their own, rounded to 2 MiB. A free block is
// reused best fit first and split if what is left over is worth keeping; neighbours merge again.
// Thread-compatible.
class AllocatorModel {
 public:
  using BlockId = int64_t;

  BlockId allocate(int64_t bytes);  // bytes >= 0; 0 takes nothing
  void release(BlockId block);      // of allocate(), once

  // What the block really takes: its request rounded, or more where the rest was not split off.
  int64_t block_bytes(BlockId block) const;

  int64_t allocated_bytes() const { return allocated_bytes_; }
  int64_t peak_allocated_bytes() const { return peak_allocated_bytes_; }
  int64_t reserved_bytes() const { return reserved_bytes_; }
  void reset_peak() { peak_allocated_bytes_ = allocated_bytes_; }

 private:
  struct Block {
    int64_t bytes = 0;
    bool is_small = false;  // belongs to the pool of small segments
    bool is_free = false;
    BlockId before = 0;  // neighbours within the segment; 0: none
    BlockId after = 0;
  };
  using FreeList = std::set<std::pair<int64_t, BlockId>>;  // by size, then age

  BlockId take_or_reserve(int64_t bytes);
  void split(BlockId block, int64_t bytes);
  void merge_with_next(BlockId block);
  FreeList& free_list(bool is_small) { return is_small ? free_small_ : free_large_; }

  std::map<BlockId, Block> blocks_;
  FreeList free_small_;
  FreeList free_large_;
  BlockId next_id_ = 1;
  int64_t allocated_bytes_ = 0;
  int64_t peak_allocated_bytes_ = 0;
  int64_t reserved_bytes_ = 0;
};

}  // namespace assay::estimate
