// Robust statistics of step times: median, MAD, quantiles, an interval for the median without
// resampling, and the end of the warm-up found from the data. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::harness {

// All of them throw InternalError for an empty sample; values must be finite.
double median(std::span<const double> values);
// Median absolute deviation from the median, unscaled.
double median_absolute_deviation(std::span<const double> values);
// Linear interpolation between order statistics (Hyndman & Fan 1996, type 7); fraction in [0, 1].
double quantile(std::span<const double> values, double fraction);
double mean(std::span<const double> values);

// Distribution-free interval for the median from order statistics: the narrowest symmetric pair
// x(k), x(n+1-k) whose binomial(n, 1/2) coverage is at least `confidence`. With too few values for
// that (n < 6 at 95 %) it is the whole range, and `coverage` says what it really covers.
struct MedianInterval {
  double low = 0;
  double high = 0;
  double coverage = 0;  // probability in [0, 1]
};
MedianInterval median_interval(std::span<const double> values, double confidence = 0.95);

// Where the warm-up ends. The level is the median of the second half; the band around it is
// max(5 %, 3 MAD of the second half), because a step within ordinary noise is not warm-up. The
// warm-up ends at the first index whose following window (a tenth of the values, at least 5) has
// its median in the band, and that lies in the band itself. A band wider than half the level (two
// modes, or noise as large as the step) is not steady.
struct WarmUp {
  size_t length = 0;       // values before the steady window
  double level = 0;        // median of the second half
  double band = 0;         // half width around the level
  bool is_steady = false;  // false: no such index in the first half; `length` is then that half
};
WarmUp find_warm_up(std::span<const double> values);

struct Summary {
  size_t count = 0;
  double median = 0;
  double mad = 0;
  double p95 = 0;
  double min = 0;
  double max = 0;
  double mean = 0;
  MedianInterval interval;
};
Summary summarize(std::span<const double> values);

}  // namespace assay::harness
