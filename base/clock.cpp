#include "base/clock.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace assay {
namespace {

double seconds_of(clockid_t clock) {
  timespec now{};
  if (clock_gettime(clock, &now) != 0) {
    throw InternalError(cat("clock_gettime failed for clock ", clock));
  }
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string padded(int64_t value, size_t width) {
  std::string digits = std::to_string(value);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

struct UtcTime {
  tm fields{};
  int64_t milliseconds = 0;
};

UtcTime utc_now() {
  timespec now{};
  UtcTime utc;
  const bool is_known = clock_gettime(CLOCK_REALTIME, &now) == 0;
  if (!is_known || gmtime_r(&now.tv_sec, &utc.fields) == nullptr) {
    throw InternalError("the system's wall clock cannot be read");
  }
  utc.milliseconds = now.tv_nsec / 1'000'000;
  return utc;
}

// Field 22 of /proc/self/stat (proc(5)): start after boot, in clock ticks.
std::optional<uint64_t> start_ticks(std::string_view stat) {
  // The second field is the program's name in parentheses, which may hold spaces and parentheses.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 > stat.size()) return std::nullopt;
  const std::vector<std::string> fields = split(stat.substr(name_end + 2), ' ');
  constexpr size_t kStartTime = 22 - 3;  // the first one here is field 3
  if (fields.size() <= kStartTime) return std::nullopt;
  return parse_uint64(fields[kStartTime]);
}

}  // namespace

double monotonic_seconds() { return seconds_of(CLOCK_MONOTONIC); }

double process_age_seconds() {
  const std::optional<uint64_t> ticks = start_ticks(read_file("/proc/self/stat"));
  if (!ticks) throw InternalError("/proc/self/stat has no start time in field 22");
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const double started = static_cast<double>(*ticks) / ticks_per_second;
  return std::max(0.0, seconds_of(CLOCK_BOOTTIME) - started);
}

std::string utc_timestamp() {
  const UtcTime utc = utc_now();
  const tm& at = utc.fields;
  return cat(padded(at.tm_year + 1900, 4), '-', padded(at.tm_mon + 1, 2), '-',
             padded(at.tm_mday, 2), 'T', padded(at.tm_hour, 2), ':', padded(at.tm_min, 2), ':',
             padded(at.tm_sec, 2), '.', padded(utc.milliseconds, 3), 'Z');
}

std::string utc_compact() {
  const tm at = utc_now().fields;
  return cat(padded(at.tm_year + 1900, 4), padded(at.tm_mon + 1, 2), padded(at.tm_mday, 2), '-',
             padded(at.tm_hour, 2), padded(at.tm_min, 2), padded(at.tm_sec, 2));
}

}  // namespace assay
