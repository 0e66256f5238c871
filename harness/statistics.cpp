#include "harness/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace assay::harness {
namespace {

constexpr double kWarmUpBandFraction = 0.05;  // see the header: smaller changes are noise
constexpr double kWarmUpBandMads = 3.0;       // about two standard deviations of a normal sample
constexpr double kUnsteadyFraction = 0.5;     // a band this wide holds no one step time
constexpr size_t kSmallestWindow = 5;

std::vector<double> sorted_copy(std::span<const double> values) {
  if (values.empty()) throw InternalError("statistics of an empty sample were asked for");
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

double quantile_of_sorted(std::span<const double> sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(place));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = place - static_cast<double>(below);
  return sorted[below] + weight * (sorted[above] - sorted[below]);
}

}  // namespace

double median(std::span<const double> values) { return quantile(values, 0.5); }

double median_absolute_deviation(std::span<const double> values) {
  const double center = median(values);
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - center));
  return median(deviations);
}

double quantile(std::span<const double> values, double fraction) {
  return quantile_of_sorted(sorted_copy(values), fraction);
}

double mean(std::span<const double> values) {
  if (values.empty()) throw InternalError("the mean of an empty sample was asked for");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

MedianInterval median_interval(std::span<const double> values, double confidence) {
  const std::vector<double> sorted = sorted_copy(values);
  const size_t count = sorted.size();
  const double n = static_cast<double>(count);
  // tail = P(binomial(n, 1/2) < k); the pair x(k), x(n+1-k) covers the median with 1 - 2 tail.
  MedianInterval result{sorted.front(), sorted.back(), 1.0 - std::exp2(1.0 - n)};
  double tail = 0;
  for (size_t k = 1; k <= count / 2; ++k) {
    const double j = static_cast<double>(k - 1);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(j + 1) - std::lgamma(n - j + 1) -
                     n * std::log(2.0));
    const double coverage = 1.0 - 2.0 * tail;
    if (coverage < confidence) break;
    result = {sorted[k - 1], sorted[count - k], coverage};
  }
  return result;
}

WarmUp find_warm_up(std::span<const double> values) {
  const auto second_half = values.subspan(values.size() / 2);
  WarmUp result;
  result.level = median(second_half);
  result.band = std::max(kWarmUpBandFraction * std::abs(result.level),
                         kWarmUpBandMads * median_absolute_deviation(second_half));
  result.length = values.size() / 2;
  if (result.band > kUnsteadyFraction * std::abs(result.level)) return result;
  const size_t window = std::max(kSmallestWindow, values.size() / 10);
  const auto is_in_band = [&](double value) {
    return std::abs(value - result.level) <= result.band;
  };
  for (size_t i = 0; i <= values.size() / 2 && i + window <= values.size(); ++i) {
    if (is_in_band(median(values.subspan(i, window))) && is_in_band(values[i])) {
      result.length = i;
      result.is_steady = true;
      return result;
    }
  }
  return result;
}

Summary summarize(std::span<const double> values) {
  const std::vector<double> sorted = sorted_copy(values);
  Summary summary;
  summary.count = sorted.size();
  summary.median = quantile_of_sorted(sorted, 0.5);
  summary.mad = median_absolute_deviation(values);
  summary.p95 = quantile_of_sorted(sorted, 0.95);
  summary.min = sorted.front();
  summary.max = sorted.back();
  summary.mean = mean(values);
  summary.interval = median_interval(values);
  return summary;
}

}  // namespace assay::harness
