// What a person sees while a run goes on: step, loss, speed, time left. Rates come from this
// session's steps and clock only, never from steps done before a resume.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/metrics/step_record.h"

namespace assay::metrics {

struct ProgressConfig {
  int64_t first_step = 0;  // steps done before this session
  int64_t target_step = 0;
  int64_t logging_steps = 10;    // 0: no lines
  std::string unit = "samples";  // or "tokens"
  double (*clock)() = monotonic_seconds;
};

// Mean speed from the end of this session's first step on, so that start-up and the first step's
// one-time costs are not in it. Thread-compatible.
class SessionRate {
 public:
  void step_done(int64_t step, int64_t units_seen, double now_seconds);
  // Nothing until two steps are done and time has passed.
  std::optional<double> units_per_second() const;
  std::optional<double> seconds_left(int64_t target_step) const;

 private:
  struct Mark {
    int64_t step = 0;
    int64_t units = 0;
    double seconds = 0;
  };
  std::optional<Mark> first_;
  Mark last_;
};

// Main thread only. On a terminal one line is rewritten several times a second; in a file or in
// CI one line every logging_steps steps, and the last step's.
class Progress {
 public:
  Progress(const ProgressConfig& config, Logger& logger);
  void step_done(const StepRecord& record);
  // Clears the terminal's line and says where the run stands. May be called once.
  void finish();

 private:
  std::string line_of(const StepRecord& record) const;

  ProgressConfig config_;
  Logger& logger_;
  SessionRate rate_;
  std::optional<StepRecord> last_;
  double start_seconds_;
  double last_shown_seconds_ = 0;
  int64_t last_logged_step_ = -1;
};

}  // namespace assay::metrics
