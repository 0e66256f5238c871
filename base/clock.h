// Time: durations from a monotonic clock, stamps in UTC. Durations never come from the wall clock.
#pragma once

#include <string>

namespace assay {

// Seconds since an arbitrary fixed point (CLOCK_MONOTONIC).
double monotonic_seconds();

// Seconds since this process was started by the kernel (from /proc/self/stat), >= 0.
double process_age_seconds();

// "2026-12-01T02:32:32.123Z".
std::string utc_timestamp();

// "20261201-023232": for names of folders.
std::string utc_compact();

}  // namespace assay
