// GPUs by name: what they can do at most. No torch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "trainer/estimate/traced_step.h"

namespace assay::estimate {

struct Card {
  std::string_view name;     // as the driver gives it, without the maker; part of it is enough
  int64_t memory_mib = 0;    // as the driver reports it
  double half_tflops = 0;    // dense bf16 products, sums in float32
  double single_tflops = 0;  // float32 outside the matrix units
  double tb_per_s = 0;       // memory
  double link_gb_per_s = 0;  // to the other GPUs of a host, each way
};

std::span<const Card> cards();
// The card whose name is in the driver's text ("NVIDIA H200"), or that a user writes ("h200");
// nothing if none or several fit.
std::optional<Card> find_card(std::string_view text);

// Memory sizes that runs are planned for, with what the driver reports for a card of that size.
struct MemoryClass {
  int64_t gb = 0;
  int64_t mib = 0;
};
std::span<const MemoryClass> memory_classes();

// Time below which no step can fall: each operation needs its arithmetic or its bytes at the card's
// best, whichever takes longer, one after another (Williams, Waterman & Patterson 2009).
struct StepBound {
  double forward_ms = 0;   // of one micro-step
  double backward_ms = 0;  // of one micro-step
  double update_ms = 0;
};
StepBound step_bound(const StepTrace& trace, const Card& card);

// Where in the backward pass each gradient is complete, as a fraction of its time on the card; in
// the order of StepTrace::ready.
std::vector<double> ready_fractions(const StepTrace& trace, const Card& card);

}  // namespace assay::estimate
