#include "trainer/metrics/progress.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace assay::metrics {
namespace {

constexpr double kRewriteSeconds = 0.2;  // five times a second: fluent to the eye, cheap to draw

// Rounded for reading, independent of the locale; the exact values are in metrics.jsonl.
std::string short_number(double value, int significant_digits) {
  if (!std::isfinite(value)) return number_text(value);
  constexpr double kLargestWhole = 1e15;  // below, llround is exact and reads better than 1.2e+06
  const double magnitude = std::fabs(value);
  if (magnitude >= std::pow(10.0, significant_digits) && magnitude < kLargestWhole) {
    return cat(std::llround(value));
  }
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::general, significant_digits);
  return std::string(buffer.data(), end.ptr);
}

}  // namespace

void SessionRate::step_done(int64_t step, int64_t units_seen, double now_seconds) {
  last_ = {.step = step, .units = units_seen, .seconds = now_seconds};
  if (!first_) first_ = last_;
}

std::optional<double> SessionRate::units_per_second() const {
  if (!first_ || last_.step <= first_->step || last_.seconds <= first_->seconds)
    return std::nullopt;
  return static_cast<double>(last_.units - first_->units) / (last_.seconds - first_->seconds);
}

std::optional<double> SessionRate::seconds_left(int64_t target_step) const {
  if (!units_per_second()) return std::nullopt;
  const double seconds_a_step =
      (last_.seconds - first_->seconds) / static_cast<double>(last_.step - first_->step);
  return seconds_a_step * static_cast<double>(std::max<int64_t>(0, target_step - last_.step));
}

Progress::Progress(const ProgressConfig& config, Logger& logger)
    : config_(config), logger_(logger), start_seconds_(config.clock()) {}

void Progress::step_done(const StepRecord& record) {
  const double now = config_.clock();
  const bool is_tokens = config_.unit == "tokens";
  rate_.step_done(record.step, is_tokens ? record.tokens_seen : record.samples_seen, now);
  const bool is_first = !last_.has_value();
  last_ = record;
  if (config_.logging_steps == 0) return;
  if (logger_.is_terminal()) {
    if (!is_first && now - last_shown_seconds_ < kRewriteSeconds) return;
    last_shown_seconds_ = now;
    logger_.progress(line_of(record));
    return;
  }
  if (record.step % config_.logging_steps != 0 && record.step != config_.target_step) return;
  last_logged_step_ = record.step;
  logger_.info(line_of(record));
}

void Progress::finish() {
  logger_.progress("");
  if (config_.logging_steps == 0 || !last_) return;
  if (last_->step != last_logged_step_) logger_.info(line_of(*last_));
  const double seconds = config_.clock() - start_seconds_;
  logger_.info(cat(last_->step - config_.first_step, " steps in ", duration_text(seconds),
                   " of this session"));
}

std::string Progress::line_of(const StepRecord& record) const {
  const std::optional<double> rate = rate_.units_per_second();
  const std::optional<double> left = rate_.seconds_left(config_.target_step);
  std::string line = cat("step ", record.step, "/", config_.target_step, "  epoch ",
                         short_number(record.epoch, 3), "  loss ", short_number(record.loss, 5),
                         "  lr ", short_number(record.learning_rate, 3), "  ");
  line += rate ? cat(short_number(*rate, 4), " ", config_.unit, "/s") : "speed unknown";
  line += left ? cat("  left ", duration_text(*left)) : "  left unknown";
  return line;
}

}  // namespace assay::metrics
