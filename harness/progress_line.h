// What a person sees on stderr while an acceptance goes on: where it is and an honest time left. On
// a terminal one line is rewritten; elsewhere one line a scenario.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::harness {

// The time left from what was expected and what was measured so far. Pure.
class TimeEstimate {
 public:
  explicit TimeEstimate(std::vector<double> expected_seconds);
  // The scenario at `index` took `seconds`.
  void finished(size_t index, double seconds);
  // Seconds left while scenario `index` has gone on for `seconds` and has `fraction` of its trials
  // done. Expectations are scaled by measured / expected of the finished scenarios; a scenario that
  // outlives its expectation is extrapolated from its own fraction, never shown as done.
  double seconds_left(size_t index, double seconds, double fraction) const;
  double scale() const;

 private:
  std::vector<double> expected_;
  double measured_sum_ = 0;
  double expected_sum_ = 0;
};

// Main thread only.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void update(std::string_view text);  // rewritten in place on a terminal, dropped elsewhere
  void line(std::string_view text);    // a line of its own that stays

 private:
  bool is_terminal_;
  bool is_shown_ = false;
};

}  // namespace assay::harness
