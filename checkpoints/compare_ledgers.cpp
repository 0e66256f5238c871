// ids-rank<r>.jsonl of two runs: which samples each update used, in order.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/compare_logs.h"
#include "checkpoints/json_fields.h"

namespace assay::checkpoints {
namespace {

constexpr std::string_view kReason = "data order: other samples were used";

using Ledger = std::map<int64_t, std::vector<int64_t>>;  // step -> ids

std::vector<std::string> ledger_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const std::string& name : list_directory(folder)) {
    if (name.starts_with("ids-rank") && name.ends_with(".jsonl")) names.push_back(name);
  }
  return names;
}

// Adds a file's ids to a ledger; a torn last line is left out.
void read_ledger(const std::string& path, Ledger& ledger) {
  const std::string text = read_file(path);
  int64_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) return;
    const std::string origin = cat(path, " line ", number);
    const nlohmann::json json =
        parse_checkpoint_json(std::string_view(text).substr(begin, end - begin), origin);
    JsonFields fields(json, origin);
    std::vector<int64_t>& ids = ledger[fields.count("step")];
    for (const nlohmann::json& id : fields.array("ids")) {
      if (!id.is_number_integer()) fields.refuse("ids", "holds what is not an integer");
      ids.push_back(id.get<int64_t>());
    }
    begin = end + 1;
  }
}

std::string id_text(const std::vector<int64_t>& ids, size_t index) {
  return index < ids.size() ? cat(ids[index]) : cat("absent, ", ids.size(), " ids");
}

// The first step that both have whose ids differ. Steps that one lacks show in metrics.jsonl.
std::optional<Difference> first_ledger_difference(const std::string& name, const Ledger& left,
                                                  const Ledger& right) {
  for (const auto& [step, ids] : left) {
    const auto other = right.find(step);
    if (other == right.end() || other->second == ids) continue;
    size_t index = 0;
    while (index < ids.size() && index < other->second.size() &&
           ids[index] == other->second[index]) {
      ++index;
    }
    return Difference{.step = step,
                      .where = cat(name, " step ", step),
                      .field = cat("ids[", index, "]"),
                      .left = id_text(ids, index),
                      .right = id_text(other->second, index),
                      .likely_reason = std::string(kReason)};
  }
  return std::nullopt;
}

Ledger whole_ledger(const std::string& folder, const std::vector<std::string>& names) {
  Ledger ledger;
  for (const std::string& name : names) read_ledger(join_path(folder, name), ledger);
  for (auto& [step, ids] : ledger) std::sort(ids.begin(), ids.end());
  return ledger;
}

void append(std::optional<Difference> difference, Comparison& comparison) {
  if (difference) comparison.differences.push_back(*std::move(difference));
}

}  // namespace

void compare_ledgers(const std::string& left, const std::string& right, Comparison& comparison) {
  const std::vector<std::string> left_names = ledger_names(left);
  const std::vector<std::string> right_names = ledger_names(right);
  if (left_names.empty() || right_names.empty()) return;  // --log_sample_ids was off
  if (left_names != right_names) {
    append(first_ledger_difference("ids of all ranks, sorted,", whole_ledger(left, left_names),
                                   whole_ledger(right, right_names)),
           comparison);
    return;
  }
  for (const std::string& name : left_names) {
    Ledger left_ledger;
    Ledger right_ledger;
    read_ledger(join_path(left, name), left_ledger);
    read_ledger(join_path(right, name), right_ledger);
    append(first_ledger_difference(name, left_ledger, right_ledger), comparison);
  }
}

}  // namespace assay::checkpoints
