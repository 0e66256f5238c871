#include "trainer/metrics/step_record.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace assay::metrics {
namespace {

// Builds one JSON object in the order of its calls. Numbers go through number_text: shortest text
// that reads back as the same double, whatever the locale.
class LineBuilder {
 public:
  void text(std::string_view key, std::string_view value) {
    name(key);
    line_ += nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  void integer(std::string_view key, int64_t value) {
    name(key);
    line_ += std::to_string(value);
  }
  // A non-finite value becomes null and is listed.
  void number(std::string_view key, double value) {
    if (!std::isfinite(value))
      nonfinite_.push_back(group_.empty() ? std::string(key) : cat(group_, ".", key));
    name(key);
    line_ += std::isfinite(value) ? number_text(value) : "null";
  }
  void open(std::string_view group) {
    name(group);
    line_ += '{';
    group_ = group;
    is_first_ = true;
  }
  void close() {
    line_ += '}';
    group_.clear();
  }
  std::string finish() {
    if (!nonfinite_.empty()) {
      name("nonfinite");
      line_ += nlohmann::json(nonfinite_).dump();
    }
    return line_ + "}";
  }

 private:
  void name(std::string_view key) {
    if (!is_first_) line_ += ',';
    is_first_ = false;
    line_ += cat('"', key, "\":");
  }

  std::string line_ = "{";
  std::string group_;
  bool is_first_ = true;
  std::vector<std::string> nonfinite_;
};

void add_phases(LineBuilder& line, const PhaseTimes& phases) {
  line.open("phases");
  line.number("data_wait", phases.data_wait_ms);
  line.number("h2d", phases.h2d_ms);
  line.number("forward", phases.forward_ms);
  line.number("backward", phases.backward_ms);
  line.number("comm", phases.comm_ms);
  line.number("optimizer", phases.optimizer_ms);
  line.number("checkpoint", phases.checkpoint_ms);
  line.number("other", phases.other_ms);
  line.close();
}

void add_memory(LineBuilder& line, const MemoryUse& memory) {
  line.open("memory");
  line.integer("allocated_bytes", memory.allocated_bytes);
  line.integer("peak_allocated_bytes", memory.peak_allocated_bytes);
  line.integer("reserved_bytes", memory.reserved_bytes);
  line.integer("host_rss_bytes", memory.host_rss_bytes);
  line.close();
}

}  // namespace

std::string to_json_line(const StepRecord& record) {
  LineBuilder line;
  line.integer("step", record.step);
  line.number("epoch", record.epoch);
  line.integer("updates", record.updates);
  line.integer("skipped", record.skipped);
  line.number("loss", record.loss);
  line.number("learning_rate", record.learning_rate);
  line.number("grad_norm", record.grad_norm);
  line.number("loss_scale", record.loss_scale);
  line.integer("samples_seen", record.samples_seen);
  line.integer("tokens_seen", record.tokens_seen);
  line.number("time_ms", record.time_ms);
  add_phases(line, record.phases);
  if (record.comm_total_ms > 0) line.number("comm_total_ms", record.comm_total_ms);
  add_memory(line, record.memory);
  line.text("ids_digest", record.ids_digest);
  line.text("loss_hex", hex_float(record.loss));
  line.text("grad_norm_hex", hex_float(record.grad_norm));
  return line.finish();
}

std::string to_json_line(const EvalRecord& record) {
  LineBuilder line;
  line.text("event", "eval");
  line.integer("step", record.step);
  line.number("epoch", record.epoch);
  line.number("loss", record.loss);
  line.number("accuracy", record.accuracy);
  line.integer("samples", record.samples);
  line.integer("targets", record.targets);
  line.number("time_ms", record.time_ms);
  line.text("loss_hex", hex_float(record.loss));
  return line.finish();
}

}  // namespace assay::metrics
