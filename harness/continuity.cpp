#include "harness/continuity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/files.h"
#include "base/text.h"
#include "checkpoints/compare.h"
#include "harness/ledger.h"
#include "harness/run_folder.h"
#include "trainer/metrics/step_record.h"

namespace assay::harness {
namespace {

// The first way in which the step records differ as a list: a missing, double or extra step.
std::string step_list_problem(const std::string& control, const std::string& resumed) {
  const auto left = metrics::read_metrics(join_path(control, "metrics.jsonl")).steps;
  const auto right = metrics::read_metrics(join_path(resumed, "metrics.jsonl")).steps;
  for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const std::string a = i < left.size() ? cat("step ", left[i].step) : "nothing";
    const std::string b = i < right.size() ? cat("step ", right[i].step) : "nothing";
    if (a != b) return cat("metrics.jsonl record ", i + 1, ": control has ", a, ", resumed ", b);
  }
  return "";
}

std::string ids_problem(const std::string& control, const std::string& resumed) {
  const bool is_in_control = path_exists(join_path(control, "ids-rank0.jsonl"));
  const bool is_in_resumed = path_exists(join_path(resumed, "ids-rank0.jsonl"));
  if (!is_in_control && !is_in_resumed) return "";
  if (is_in_control != is_in_resumed) return "only one of the runs has ids-rank0.jsonl";
  const auto left = read_ids(control);
  const auto right = read_ids(resumed);
  if (left.size() != right.size()) {
    return cat("ids-rank0.jsonl: control has ", left.size(), " lines, resumed ", right.size());
  }
  const std::string difference = first_ledger_difference(left, right);
  return difference.empty() ? "" : cat("ids-rank0.jsonl ", difference);
}

std::string describe(const checkpoints::Difference& difference) {
  std::string text = cat(difference.where, " ", difference.field, ": control ", difference.left,
                         ", resumed ", difference.right);
  if (!difference.likely_reason.empty()) text += cat(" (", difference.likely_reason, ")");
  return text;
}

// Fields that rounding may move. Everything else is exact: a counter, a learning rate, a sample id
// or the state of a generator that differs at all means another run.
bool is_rounded_field(const checkpoints::Difference& difference) {
  constexpr std::array<std::string_view, 4> kFields = {"loss", "grad_norm", "accuracy",
                                                       "last_loss"};
  return std::find(kFields.begin(), kFields.end(), difference.field) != kFields.end();
}

// The number that a text like "0.5 (0x1p-1)" begins with.
std::optional<double> leading_number(const std::string& text) {
  return parse_double(text.substr(0, text.find(' ')));
}

// How far a floating-point difference goes, relative; nothing for a field that must be exact.
std::optional<double> relative_gap(const checkpoints::Difference& difference) {
  const bool is_tensor = difference.where.ends_with(".safetensors");
  if (is_tensor && difference.relative_difference > 0) return difference.relative_difference;
  if (!is_rounded_field(difference)) return std::nullopt;
  const auto left = leading_number(difference.left);
  const auto right = leading_number(difference.right);
  if (!left || !right || !std::isfinite(*left) || !std::isfinite(*right)) return std::nullopt;
  const double scale = std::max(std::abs(*left), std::abs(*right));
  return scale == 0 ? 0 : std::abs(*left - *right) / scale;
}

}  // namespace

std::string_view continuity_name(Continuity continuity) {
  switch (continuity) {
    case Continuity::kBitEqual:
      return "bit-equal";
    case Continuity::kWithinTolerance:
      return "within tolerance";
    case Continuity::kBroken:
      break;
  }
  return "broken";
}

ContinuityVerdict judge_continuity(const std::string& control, const std::string& resumed,
                                   double tolerance) {
  ContinuityVerdict verdict;
  for (const auto& find : {step_list_problem, ids_problem}) {
    verdict.first_difference = find(control, resumed);
    if (!verdict.first_difference.empty()) return verdict;
  }
  const checkpoints::Comparison comparison = checkpoints::compare_runs(control, resumed);
  verdict.compared_steps = comparison.compared_steps;
  verdict.compared_checkpoints = comparison.compared_checkpoints;
  verdict.compared_tensors = comparison.compared_tensors;
  verdict.greatest_relative = comparison.max_relative_difference;
  bool are_all_numbers = true;
  for (const checkpoints::Difference& difference : comparison.differences) {
    if (verdict.first_difference.empty()) verdict.first_difference = describe(difference);
    const std::optional<double> gap = relative_gap(difference);
    are_all_numbers = are_all_numbers && gap.has_value();
    verdict.greatest_relative = std::max(verdict.greatest_relative, gap.value_or(0));
  }
  const std::string left_digest = read_outcome(control).state_digest;
  const std::string right_digest = read_outcome(resumed).state_digest;
  const bool is_digest_equal = !left_digest.empty() && left_digest == right_digest;
  if (verdict.first_difference.empty() && !is_digest_equal) {
    verdict.first_difference =
        cat("result.json state_digest: control ", left_digest, ", resumed ", right_digest);
    return verdict;  // broken: something outside every compared field differs
  }
  if (verdict.first_difference.empty()) {
    verdict.continuity = Continuity::kBitEqual;
  } else if (are_all_numbers && verdict.greatest_relative <= tolerance) {
    verdict.continuity = Continuity::kWithinTolerance;
  }
  return verdict;
}

}  // namespace assay::harness
