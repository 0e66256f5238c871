#include "checkpoints/diff_command.h"

#include <cmath>
#include <iostream>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/command_options.h"
#include "checkpoints/compare.h"
#include "checkpoints/json_fields.h"

namespace assay::checkpoints {
namespace {

// More would hide the first one, which is the answer; --json has all.
constexpr size_t kShownDifferences = 20;

nlohmann::ordered_json difference_json(const Difference& difference) {
  nlohmann::ordered_json json;
  json["step"] = difference.step;
  json["where"] = escaped(difference.where);
  json["field"] = escaped(difference.field);
  json["left"] = escaped(difference.left);
  json["right"] = escaped(difference.right);
  json["likely_reason"] = difference.likely_reason;
  put_exact_number(json, "relative_difference", difference.relative_difference);
  return json;
}

std::string json_text(const Comparison& comparison) {
  nlohmann::ordered_json json;
  json["left"] = escaped(comparison.left);
  json["right"] = escaped(comparison.right);
  json["verdict"] = comparison.is_bit_equal() ? "equal" : "different";
  json["compared_steps"] = comparison.compared_steps;
  json["compared_checkpoints"] = comparison.compared_checkpoints;
  json["compared_tensors"] = comparison.compared_tensors;
  put_exact_number(json, "max_relative_difference", comparison.max_relative_difference);
  json["differences"] = nlohmann::ordered_json::array();
  for (const Difference& difference : comparison.differences) {
    json["differences"].push_back(difference_json(difference));
  }
  return dump_json(json, "the comparison");
}

std::string difference_text(const Difference& difference) {
  std::string text = cat(escaped(difference.where), "  ", escaped(difference.field), ": ",
                         escaped(difference.left), " | ", escaped(difference.right));
  if (difference.relative_difference > 0) {
    text += cat("  ||a-b||/||b|| = ", difference.relative_difference);
  }
  return text;
}

std::string human_text(const Comparison& comparison) {
  std::string text =
      cat("left   ", escaped(comparison.left), "\nright  ", escaped(comparison.right),
          "\ncompared ", comparison.compared_steps, " log lines, ", comparison.compared_checkpoints,
          " checkpoints, ", comparison.compared_tensors, " tensors\n");
  if (comparison.is_bit_equal()) return text + "EQUAL bit for bit\n";
  const Difference& first = comparison.differences.front();
  text += cat("DIFFERENT, first at ", difference_text(first), "\n");
  if (!first.likely_reason.empty()) text += cat("likely reason: ", first.likely_reason, "\n");
  size_t shown = 1;
  for (; shown < comparison.differences.size() && shown < kShownDifferences; ++shown) {
    text += cat("  also ", difference_text(comparison.differences[shown]), "\n");
  }
  const size_t rest = comparison.differences.size() - shown;
  if (rest > 0) text += cat("  and ", rest, " more; --json lists them all\n");
  return text;
}

}  // namespace

int run_diff_command(std::span<const std::string> words) {
  const CommandOptions options = parse_command(
      {.name = "assay diff",
       .summary = "Compares two runs (logs without times, sample ids, checkpoints of common "
                  "steps) or two checkpoints, and names the first differing step and field. "
                  "Exit code: 0 equal, 6 different, 4 unreadable.",
       .path_names = "LEFT RIGHT",
       .path_count = 2,
       .has_output = false},
      words);
  if (options.is_help) {
    std::cout << options.help;
    return static_cast<int>(ExitCode::kOk);
  }
  const Comparison comparison = compare_runs(options.paths[0], options.paths[1]);
  std::cout << (options.is_json ? json_text(comparison) : human_text(comparison));
  return static_cast<int>(comparison.is_bit_equal() ? ExitCode::kOk : ExitCode::kCheckFailed);
}

}  // namespace assay::checkpoints
