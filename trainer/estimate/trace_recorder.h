// What one traced step takes: memory by kind at its peak, and the work of each operation. No torch:
// the shape device feeds it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "trainer/estimate/allocator_model.h"

namespace assay::estimate {

enum class MemoryKind {
  kWeights,  // parameters and buffers
  kGradients,
  kOptimizer,
  kBatch,        // inputs and targets
  kActivations,  // allocated by the forward pass and not freed yet
  kTemporaries,  // allocated by the backward pass or the update
  kWorkspace,    // scratch memory of the libraries
};
inline constexpr size_t kNumMemoryKinds = 7;
using BytesByKind = std::array<int64_t, kNumMemoryKinds>;

enum class Stage { kSetup, kForward, kBackward, kUpdate };

// Arithmetic that peaks differ for.
enum class Arithmetic { kHalf, kSingle, kDouble };  // half: bf16 and fp16

// One operation's work. Matrix work is what matrix units can do; bytes are inputs and outputs, each
// moved once.
struct OperationWork {
  std::string name;
  Stage stage = Stage::kSetup;
  Arithmetic arithmetic = Arithmetic::kSingle;
  double flops = 0;  // a multiply and an add count two
  double bytes = 0;
};

// Bytes of a kind that are allocated when the total is at its highest.
struct MemoryPeak {
  int64_t bytes = 0;
  BytesByKind by_kind{};
};

// Thread-safe: the backward pass runs on a thread of its own.
class TraceRecorder {
 public:
  // What is allocated from now on is of this kind, what is done belongs to this stage.
  void set_kind(MemoryKind kind);
  void set_stage(Stage stage);

  int64_t allocate(int64_t bytes);
  void release(int64_t allocation);
  // Memory that a library takes for the time of one operation.
  void use_scratch(int64_t bytes);
  // Memory that a library takes once and keeps.
  void keep_workspace(int64_t bytes);
  void add_work(std::string name, Arithmetic arithmetic, double flops, double bytes);
  // Keys and values that an attention of the forward pass read.
  void add_attention(int64_t key_value_elements);
  int64_t attention_elements() const;
  // Entry in work() behind the newest.
  size_t num_operations() const;

  void reset_peak();
  MemoryPeak peak() const;
  BytesByKind live_bytes() const;
  // What was asked for, without the allocator's rounding.
  BytesByKind requested_bytes() const;
  int64_t reserved_bytes() const;
  std::vector<OperationWork> work() const;

 private:
  struct Allocation {
    MemoryKind kind = MemoryKind::kWeights;
    AllocatorModel::BlockId block = 0;
    int64_t bytes = 0;  // asked for
  };
  int64_t allocate_locked(int64_t bytes, MemoryKind kind);
  void release_locked(int64_t allocation);

  mutable std::mutex mutex_;
  AllocatorModel allocator_;
  std::map<int64_t, Allocation> allocations_;
  int64_t next_allocation_ = 1;
  MemoryKind kind_ = MemoryKind::kWeights;
  Stage stage_ = Stage::kSetup;
  BytesByKind live_{};
  BytesByKind requested_{};
  MemoryPeak peak_;
  std::vector<OperationWork> work_;
  int64_t attention_elements_ = 0;
};

}  // namespace assay::estimate
