#include "checkpoints/compare_logs.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/json_fields.h"

namespace assay::checkpoints {
namespace {

// Times and memory differ between any two runs.
constexpr std::array<std::string_view, 4> kIgnored = {"time_ms", "phases", "comm_total_ms",
                                                      "memory"};
// Causes before what follows from them.
constexpr std::array<std::string_view, 13> kOrder = {
    "step",    "ids_digest",    "epoch",         "samples_seen", "tokens_seen",
    "updates", "skipped",       "learning_rate", "loss_scale",   "loss_hex",
    "loss",    "grad_norm_hex", "grad_norm"};

struct LineKey {
  int64_t step = 0;
  std::string event;  // "" for an update, "eval" for an evaluation
  bool operator<(const LineKey& other) const {
    return std::pair(step, event) < std::pair(other.step, other.event);
  }
};

struct LogLines {
  std::map<LineKey, std::string_view> lines;  // into the text
  std::optional<LineKey> repeated;            // the first key that is there twice
  int64_t last_step = 0;
};

std::string read_log(const std::string& path) {
  try {
    return read_file(path);
  } catch (const FileError& error) {
    throw CheckpointError(cat(error.what(), ". Fix: give the folder of a run"));
  }
}

// Calls for every whole line; a torn last one (the run is live or was killed) is left out.
void for_each_line(const std::string& path, std::string_view text,
                   const std::function<void(std::string_view, const nlohmann::json&)>& use) {
  int64_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return;
    const std::string_view line = text.substr(begin, end - begin);
    const nlohmann::json json = parse_checkpoint_json(line, cat(path, " line ", number));
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) {
      throw CheckpointError(cat(path, " line ", number,
                                ": field \"step\" is not an integer. Fix: give "
                                "the log of a run"));
    }
    use(line, json);
    begin = end + 1;
  }
}

LogLines index_lines(const std::string& path, std::string_view text) {
  LogLines log;
  for_each_line(path, text, [&](std::string_view line, const nlohmann::json& json) {
    const auto event = json.find("event");
    LineKey key{json["step"].get<int64_t>(), ""};
    if (event != json.end() && event->is_string()) key.event = event->get<std::string>();
    log.last_step = std::max(log.last_step, key.step);
    if (!log.lines.emplace(key, line).second && !log.repeated) log.repeated = key;
  });
  return log;
}

// Fields of both lines that are compared, causes first.
std::vector<std::string> field_names(const nlohmann::json& left, const nlohmann::json& right) {
  std::set<std::string> names;
  for (const nlohmann::json* line : {&left, &right}) {
    for (const auto& [key, unused] : line->items()) names.insert(key);
  }
  for (const std::string_view ignored : kIgnored) names.erase(std::string(ignored));
  std::vector<std::string> ordered;
  for (const std::string_view name : kOrder) {
    if (names.erase(std::string(name)) > 0) ordered.emplace_back(name);
  }
  ordered.insert(ordered.end(), names.begin(), names.end());
  return ordered;
}

std::string value_text(const nlohmann::json& line, const std::string& name) {
  const auto found = line.find(name);
  if (found == line.end()) return "absent";
  std::string text = found->is_string() ? found->get<std::string>() : found->dump();
  if (!name.ends_with("_hex")) return text;
  const auto number = line.find(name.substr(0, name.size() - 4));
  const bool has_number = number != line.end() && number->is_number();
  return has_number ? cat(number->dump(), " (", text, ")") : text;
}

struct FieldDifference {
  std::string name;
  std::string left;
  std::string right;
};

std::vector<FieldDifference> differing_fields(const nlohmann::json& left,
                                              const nlohmann::json& right) {
  std::vector<FieldDifference> fields;
  std::set<std::string> exact;  // their plain number is the same fact
  for (const std::string& name : field_names(left, right)) {
    const bool is_in_both = left.contains(name) && right.contains(name);
    if (name.ends_with("_hex") && is_in_both) exact.insert(name.substr(0, name.size() - 4));
    if (exact.count(name) > 0) continue;
    if (is_in_both && left[name] == right[name]) continue;
    std::string shown = name;
    if (name.ends_with("_hex") && is_in_both) shown.resize(shown.size() - 4);
    fields.push_back({shown, value_text(left, name), value_text(right, name)});
  }
  return fields;
}

// What is known about a step when its first difference is explained.
struct StepFacts {
  bool is_first = false;       // first step that both have
  bool is_after_save = false;  // the step before was saved
  bool is_second_after_save = false;
  bool has_equal_ids = true;
  bool has_equal_loss = true;
};

std::string loss_reason(const StepFacts& facts) {
  if (!facts.has_equal_ids) return "follows from the other samples";
  if (facts.is_first) return "the runs start from other weights, seed or configuration";
  if (facts.is_after_save) {
    return "RNG or weights not restored: the samples are equal and the step before was saved";
  }
  if (facts.is_second_after_save) {
    return "optimizer state or scaler not restored: the first step after the save is still equal";
  }
  return "numbers: other kernels, threads, hardware or library versions, since samples are equal";
}

std::string field_reason(const std::string& field, const StepFacts& facts) {
  if (field == "ids_digest") return "data order: other samples were used";
  if (field == "learning_rate") return "schedule: another type, horizon or position";
  if (field == "loss_scale") return "gradient scaler: not restored, or other steps overflowed";
  if (field == "loss") return loss_reason(facts);
  if (field == "grad_norm") {
    if (!facts.has_equal_loss) return "follows from the loss";
    return "backward pass: order of sums, non-deterministic kernels, or accumulation";
  }
  constexpr std::array<std::string_view, 5> kCounters = {"updates", "skipped", "samples_seen",
                                                         "tokens_seen", "epoch"};
  const bool is_counter = std::find(kCounters.begin(), kCounters.end(), field) != kCounters.end();
  return is_counter ? "counters: not restored, or steps were lost or repeated" : "";
}

std::string place_of(const LineKey& key) {
  return cat(kMetricsFile, " step ", key.step, key.event.empty() ? "" : cat(" (", key.event, ")"));
}

// eval_steps of a run's configuration; 0 if there is none.
int64_t eval_interval(const std::string& run_dir) {
  const std::string path = join_path(run_dir, "config.json");
  if (!path_exists(path)) return 0;
  const auto json = nlohmann::json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  const bool is_there =
      json.is_object() && json.contains("eval_steps") && json["eval_steps"].is_number_integer();
  return is_there ? json["eval_steps"].get<int64_t>() : 0;
}

// Walks over the steps of two logs and remembers which fields were reported.
class MetricsWalk {
 public:
  MetricsWalk(const std::set<int64_t>& saved_steps, int64_t eval_interval, Comparison& comparison)
      : saved_steps_(saved_steps), eval_interval_(eval_interval), comparison_(comparison) {}

  void compare(const LineKey& key, const nlohmann::json& left, const nlohmann::json& right) {
    const std::vector<FieldDifference> fields = differing_fields(left, right);
    StepFacts facts{.is_first = comparison_.compared_steps == 0,
                    .is_after_save = saved_steps_.count(key.step - 1) > 0,
                    .is_second_after_save = saved_steps_.count(key.step - 2) > 0};
    for (const FieldDifference& field : fields) {
      if (field.name == "ids_digest") facts.has_equal_ids = false;
      if (field.name == "loss") facts.has_equal_loss = false;
    }
    for (const FieldDifference& field : fields) {
      if (!reported_.insert(cat(key.event, "/", field.name)).second) continue;
      add(key, field.name, field.left, field.right, field_reason(field.name, facts));
    }
    ++comparison_.compared_steps;
  }

  void miss(const LineKey& key, const LogLines& other, bool is_left) {
    // Every session evaluates at its last step: 30 -> 35 steps has one at 30 that 35 has not.
    const bool is_by_interval = eval_interval_ > 0 && key.step % eval_interval_ == 0;
    if (key.event == "eval" && key.step < other.last_step && !is_by_interval) return;
    if (!reported_.insert(cat(key.event, is_left ? "/only left" : "/only right")).second) return;
    const std::string side = is_left ? "right" : "left";
    const std::string reason = key.step > other.last_step
                                   ? cat("the ", side, " run ends at step ", other.last_step)
                                   : cat("the ", side, " run's log has a gap");
    add(key, "step", is_left ? "present" : "absent", is_left ? "absent" : "present", reason);
  }

  void repeat(const LineKey& key, bool is_left) {
    add(key, "step", is_left ? "twice" : "", is_left ? "" : "twice",
        "log: lines after the checkpoint were not cut off at a resume");
  }

 private:
  void add(const LineKey& key, const std::string& field, const std::string& left,
           const std::string& right, const std::string& reason) {
    comparison_.differences.push_back({.step = key.step,
                                       .where = place_of(key),
                                       .field = field,
                                       .left = left,
                                       .right = right,
                                       .likely_reason = reason});
  }

  const std::set<int64_t>& saved_steps_;
  int64_t eval_interval_;  // steps; 0: after the last step only
  Comparison& comparison_;
  std::set<std::string> reported_;
};

}  // namespace

void compare_metrics(const std::string& left, const std::string& right,
                     const std::set<int64_t>& saved_steps, Comparison& comparison) {
  const std::string left_path = join_path(left, kMetricsFile);
  const std::string right_path = join_path(right, kMetricsFile);
  const std::string left_text = read_log(left_path);
  const std::string right_text = read_log(right_path);
  const LogLines left_log = index_lines(left_path, left_text);
  const LogLines right_log = index_lines(right_path, right_text);
  MetricsWalk walk(saved_steps, std::max(eval_interval(left), eval_interval(right)), comparison);
  if (left_log.repeated) walk.repeat(*left_log.repeated, true);
  if (right_log.repeated) walk.repeat(*right_log.repeated, false);
  for (const auto& [key, line] : left_log.lines) {
    const auto other = right_log.lines.find(key);
    if (other == right_log.lines.end()) {
      walk.miss(key, right_log, true);
    } else {
      walk.compare(key, nlohmann::json::parse(line), nlohmann::json::parse(other->second));
    }
  }
  for (const auto& [key, line] : right_log.lines) {
    if (left_log.lines.count(key) == 0) walk.miss(key, left_log, false);
  }
}

}  // namespace assay::checkpoints
