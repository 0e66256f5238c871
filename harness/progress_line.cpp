#include "harness/progress_line.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/ioctl.h>

#include <unistd.h>

#include "base/text.h"
#include "harness/report/escape.h"

namespace assay::harness {
namespace {

constexpr size_t kUsualColumns = 80;

size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kUsualColumns;
}

bool is_dumb_terminal() {
  const char* kind = std::getenv("TERM");
  return kind != nullptr && std::string_view(kind) == "dumb";
}

}  // namespace

TimeEstimate::TimeEstimate(std::vector<double> expected_seconds)
    : expected_(std::move(expected_seconds)) {}

void TimeEstimate::finished(size_t index, double seconds) {
  measured_sum_ += seconds;
  expected_sum_ += expected_.at(index);
}

double TimeEstimate::scale() const {
  return expected_sum_ > 0 ? measured_sum_ / expected_sum_ : 1.0;
}

double TimeEstimate::seconds_left(size_t index, double seconds, double fraction) const {
  double later = 0;
  for (size_t i = index + 1; i < expected_.size(); ++i) later += expected_[i] * scale();
  const double planned = expected_.at(index) * scale();
  double here = planned - seconds;
  if (fraction > 0) {
    // What this scenario shows of itself counts more the further it is.
    const double own = seconds / fraction - seconds;
    here = (1 - fraction) * std::max(planned - seconds, 0.0) + fraction * own;
    if (planned < seconds) here = own;
  }
  return std::max(here, 0.0) + later;
}

ProgressLine::ProgressLine() : is_terminal_(isatty(STDERR_FILENO) == 1 && !is_dumb_terminal()) {}

ProgressLine::~ProgressLine() {
  if (is_shown_) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::update(std::string_view text) {
  if (!is_terminal_) return;
  std::string shown = visible_text(text);
  const size_t columns = terminal_columns() - 1;
  if (shown.size() > columns) shown.resize(columns);
  std::fputs(cat("\r\x1b[K", shown).c_str(), stderr);
  is_shown_ = true;
}

void ProgressLine::line(std::string_view text) {
  if (is_shown_) std::fputs("\r\x1b[K", stderr);
  is_shown_ = false;
  std::fputs(cat(visible_text(text), "\n").c_str(), stderr);
}

}  // namespace assay::harness
