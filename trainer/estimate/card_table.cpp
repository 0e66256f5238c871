#include "trainer/estimate/card_table.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"

namespace assay::estimate {
namespace {

// From the makers' data sheets and architecture papers: "NVIDIA H200 Tensor Core GPU" and "H100
// Tensor Core GPU" (halved where they count sparsity), "Hopper Architecture In-Depth" table 2,
// "A100 80GB" and "A100 40GB PCIe", "L40S", "L4", "A10", "Ada GPU Architecture" appendix A, "Ampere
// GA102 GPU Architecture" appendix A. Memory as nvidia-smi shows it.
constexpr Card kCards[] = {
    {"H200", 143771, 989.4, 66.9, 4.80, 450},
    {"H100 PCIe", 81559, 756.4, 51.2, 2.04, 64},
    {"H100", 81559, 989.4, 66.9, 3.35, 450},
    {"A100-SXM4-80GB", 81920, 312.0, 19.5, 2.04, 300},
    {"A100 80GB PCIe", 81920, 312.0, 19.5, 1.94, 32},
    {"A100-SXM4-40GB", 40960, 312.0, 19.5, 1.56, 300},
    {"A100-PCIE-40GB", 40960, 312.0, 19.5, 1.56, 32},
    {"L40S", 46068, 362.0, 91.6, 0.864, 32},
    {"L4", 23034, 121.0, 30.3, 0.300, 32},
    {"A10", 23028, 125.0, 31.2, 0.600, 32},
    {"RTX 4090", 24564, 165.2, 82.6, 1.008, 32},
    {"RTX 3090", 24576, 71.0, 35.6, 0.936, 32},
    {"RTX 3060", 12288, 25.4, 12.7, 0.360, 16},
};

// Sizes of an RTX 3060, an RTX 4090, an A100 40GB, an H100 and an H200.
constexpr MemoryClass kMemoryClasses[] = {
    {12, 12288}, {24, 24564}, {40, 40960}, {80, 81559}, {141, 143771}};

std::string simplified(std::string_view text) {
  std::string letters;
  for (const char letter : text) {
    const bool is_upper = letter >= 'A' && letter <= 'Z';
    const bool is_kept = is_upper || (letter >= 'a' && letter <= 'z') ||
                         (letter >= '0' && letter <= '9') || letter == ' ';
    if (letter == '-' || letter == '_') {
      letters.push_back(' ');
    } else if (is_kept) {
      letters.push_back(is_upper ? static_cast<char>(letter - 'A' + 'a') : letter);
    }
  }
  return letters;
}

// True if `part` stands in `text` as whole words.
bool has_words(const std::string& text, const std::string& part) {
  return !part.empty() && cat(" ", text, " ").find(cat(" ", part, " ")) != std::string::npos;
}

double operation_ms(const OperationWork& work, const Card& card) {
  const double tflops = work.arithmetic == Arithmetic::kHalf     ? card.half_tflops
                        : work.arithmetic == Arithmetic::kSingle ? card.single_tflops
                                                                 : card.single_tflops / 2.0;
  return std::max(work.flops / (tflops * 1e9), work.bytes / (card.tb_per_s * 1e9));
}

}  // namespace

std::span<const Card> cards() { return kCards; }

std::span<const MemoryClass> memory_classes() { return kMemoryClasses; }

std::optional<Card> find_card(std::string_view text) {
  const std::string wanted = simplified(text);
  std::optional<Card> found;
  for (const Card& card : kCards) {  // the driver's text holds the name; the first is more exact
    if (has_words(wanted, simplified(card.name))) return card;
  }
  for (const Card& card : kCards) {
    if (!has_words(simplified(card.name), wanted)) continue;
    if (found) return std::nullopt;
    found = card;
  }
  return found;
}

StepBound step_bound(const StepTrace& trace, const Card& card) {
  StepBound bound;
  for (const OperationWork& work : trace.work) {
    double& part = work.stage == Stage::kForward    ? bound.forward_ms
                   : work.stage == Stage::kBackward ? bound.backward_ms
                                                    : bound.update_ms;
    part += operation_ms(work, card);
  }
  return bound;
}

std::vector<double> ready_fractions(const StepTrace& trace, const Card& card) {
  std::vector<double> done = {0.0};  // backward time before each operation
  for (const OperationWork& work : trace.work) {
    done.push_back(done.back() + (work.stage == Stage::kBackward ? operation_ms(work, card) : 0.0));
  }
  std::vector<double> fractions;
  for (const ReadyGradient& gradient : trace.ready) {
    const double before = done[std::min(gradient.num_operations, done.size() - 1)];
    fractions.push_back(done.back() > 0 ? before / done.back() : 1.0);
  }
  return fractions;
}

}  // namespace assay::estimate
