// Reading metrics.jsonl back, and cutting a log at a checkpoint's step.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "trainer/metrics/step_record.h"

namespace assay::metrics {
namespace {

// Where a line stands, for messages.
struct LinePlace {
  const std::string& path;
  size_t line;
};

[[noreturn]] void fail(const LinePlace& place, const std::string& problem) {
  throw CheckpointError(
      cat(escaped(place.path), " line ", place.line, ": ", problem,
          ". Fix: restore the file, or resume from a checkpoint before this line"));
}

// The fields of one line. Fields that are not known are left alone: a later release may add some.
class LineReader {
 public:
  LineReader(const nlohmann::json& line, const LinePlace& place, std::string_view group = {})
      : line_(line),
        object_(group.empty() ? line : member(line, group, place)),
        place_(place),
        group_(group) {
    if (!object_.is_object()) fail(place_, cat(group_, " is no JSON object"));
  }

  int64_t integer(std::string_view key) const {
    const nlohmann::json& value = member(object_, key, place_);
    if (!value.is_number_integer()) fail(place_, cat(full(key), " is no integer: ", shown(value)));
    return value.get<int64_t>();
  }

  std::string text(std::string_view key) const {
    const nlohmann::json& value = member(object_, key, place_);
    if (!value.is_string()) fail(place_, cat(full(key), " is no text: ", shown(value)));
    return value.get<std::string>();
  }

  // null stands for a non-finite number, which "nonfinite" must list.
  double number(std::string_view key) const {
    const nlohmann::json& value = member(object_, key, place_);
    if (value.is_number()) return value.get<double>();
    if (!value.is_null()) fail(place_, cat(full(key), " is no number: ", shown(value)));
    const auto listed = line_.find("nonfinite");
    if (listed == line_.end() || !listed->is_array() ||
        std::find(listed->begin(), listed->end(), full(key)) == listed->end()) {
      fail(place_, cat(full(key), " is null, but nonfinite does not list it"));
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

  // A number whose exact bits stand in `key`_hex.
  double exact_number(std::string_view key) const {
    const double rounded = number(key);
    const std::string hex = text(cat(key, "_hex"));
    const std::optional<double> exact = parse_hex_float(hex);
    if (!exact) fail(place_, cat(full(key), "_hex is no hexadecimal number: ", quoted(hex)));
    const bool is_same = std::isnan(rounded) ? !std::isfinite(*exact) : rounded == *exact;
    if (!is_same) {
      fail(place_, cat(full(key), " is ", rounded, ", but ", full(key), "_hex says ", quoted(hex)));
    }
    return *exact;
  }

 private:
  static const nlohmann::json& member(const nlohmann::json& object, std::string_view key,
                                      const LinePlace& place) {
    const auto found = object.find(key);
    if (found == object.end()) fail(place, cat("the field ", quoted(key), " is missing"));
    return *found;
  }
  static std::string shown(const nlohmann::json& value) {
    return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).substr(0, 80);
  }
  std::string full(std::string_view key) const {
    return group_.empty() ? std::string(key) : cat(group_, ".", key);
  }

  const nlohmann::json& line_;
  const nlohmann::json& object_;
  LinePlace place_;
  std::string group_;
};

StepRecord step_of(const nlohmann::json& json, const LinePlace& place) {
  const LineReader line(json, place);
  const LineReader phases(json, place, "phases");
  const LineReader memory(json, place, "memory");
  StepRecord record;
  record.step = line.integer("step");
  record.epoch = line.number("epoch");
  record.updates = line.integer("updates");
  record.skipped = line.integer("skipped");
  record.loss = line.exact_number("loss");
  record.learning_rate = line.number("learning_rate");
  record.grad_norm = line.exact_number("grad_norm");
  record.loss_scale = line.number("loss_scale");
  record.samples_seen = line.integer("samples_seen");
  record.tokens_seen = line.integer("tokens_seen");
  record.time_ms = line.number("time_ms");
  record.phases = {.data_wait_ms = phases.number("data_wait"),
                   .h2d_ms = phases.number("h2d"),
                   .forward_ms = phases.number("forward"),
                   .backward_ms = phases.number("backward"),
                   .comm_ms = phases.number("comm"),
                   .optimizer_ms = phases.number("optimizer"),
                   .checkpoint_ms = phases.number("checkpoint"),
                   .other_ms = phases.number("other")};
  if (json.contains("comm_total_ms")) record.comm_total_ms = line.number("comm_total_ms");
  record.memory = {.allocated_bytes = memory.integer("allocated_bytes"),
                   .peak_allocated_bytes = memory.integer("peak_allocated_bytes"),
                   .reserved_bytes = memory.integer("reserved_bytes"),
                   .host_rss_bytes = memory.integer("host_rss_bytes")};
  record.ids_digest = line.text("ids_digest");
  return record;
}

EvalRecord eval_of(const nlohmann::json& json, const LinePlace& place) {
  const LineReader line(json, place);
  EvalRecord record;
  record.step = line.integer("step");
  record.epoch = line.number("epoch");
  record.loss = line.exact_number("loss");
  record.accuracy = line.number("accuracy");
  record.samples = line.integer("samples");
  record.targets = line.integer("targets");
  record.time_ms = line.number("time_ms");
  return record;
}

void read_line(std::string_view text, const LinePlace& place, MetricsFile& file) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) {
    fail(place, cat("expected a JSON object, got ", quoted(text.substr(0, 80))));
  }
  const auto event = json.find("event");
  if (event == json.end()) {
    file.steps.push_back(step_of(json, place));
  } else if (*event == "eval") {
    file.evals.push_back(eval_of(json, place));
  } else {
    fail(place,
         cat("the event ", event->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace),
             " is not known, expected \"eval\""));
  }
}

// The step of a line of ours; nothing if the line is none.
std::optional<int64_t> step_of_line(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto step = json.find("step");
  if (step == json.end() || !step->is_number_integer()) return std::nullopt;
  return step->get<int64_t>();
}

}  // namespace

MetricsFile read_metrics(const std::string& path) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const FileError& error) {  // given the exit code of a broken run folder
    throw CheckpointError(cat("cannot read metrics: ", error.what(),
                              ". Fix: name a run folder that holds metrics.jsonl"));
  }
  MetricsFile file;
  size_t begin = 0;
  for (size_t line = 1; begin < text.size(); ++line) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      file.has_torn_tail = true;
      break;
    }
    read_line(std::string_view(text).substr(begin, end - begin), {path, line}, file);
    begin = end + 1;
  }
  return file;
}

SplitLog split_log_at_step(std::string_view text, int64_t step) {
  SplitLog split_log;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const bool is_whole = newline != std::string_view::npos;
    const std::string_view line = is_whole ? text.substr(0, newline + 1) : text;
    const std::optional<int64_t> line_step = is_whole ? step_of_line(line) : std::nullopt;
    (line_step && *line_step <= step ? split_log.kept : split_log.later).append(line);
    text.remove_prefix(line.size());
  }
  return split_log;
}

}  // namespace assay::metrics
