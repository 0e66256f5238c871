#include "trainer/estimate/link_fit.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace assay::estimate {
namespace {

// A measured time is messages * latency + moved / bandwidth.
double messages_of(const AllReduceTime& time) { return 2.0 * static_cast<double>(time.ranks - 1); }
double moved_bytes(const AllReduceTime& time) {
  return messages_of(time) / static_cast<double>(time.ranks) * time.bytes;
}

// Milliseconds a message and a byte.
struct Costs {
  double message_ms = 0;
  double byte_ms = 0;
};

// Normal equations of two unknowns; each row is divided by its measured time.
Costs solve(std::span<const AllReduceTime> times) {
  double mm = 0, mb = 0, bb = 0, m1 = 0, b1 = 0;
  for (const AllReduceTime& time : times) {
    const double m = messages_of(time) / time.ms;
    const double b = moved_bytes(time) / time.ms;
    mm += m * m;
    mb += m * b;
    bb += b * b;
    m1 += m;
    b1 += b;
  }
  const double determinant = mm * bb - mb * mb;
  const Costs both = {(m1 * bb - b1 * mb) / determinant, (b1 * mm - m1 * mb) / determinant};
  if (std::isfinite(both.message_ms) && both.message_ms >= 0) return both;
  return {0.0, b1 / bb};
}

double number_of(const nlohmann::json& json, const char* key, const std::string& place) {
  const auto found = json.find(key);
  const bool is_good = found != json.end() && found->is_number() && found->get<double>() > 0;
  if (is_good) return found->get<double>();
  throw ConfigError(cat(place, ": ", quoted(key), " is ",
                        found == json.end() ? "missing" : found->dump().substr(0, 80),
                        ", must be a number above 0. Fix: write lines such as "
                        "{\"ranks\":4,\"bytes\":1048576,\"ms\":1.25}"));
}

}  // namespace

LinkFit fit_link(std::span<const AllReduceTime> times) {
  std::set<double> sizes;
  for (const AllReduceTime& time : times) {
    if (time.ranks < 2 || !(time.bytes > 0) || !(time.ms > 0)) {
      throw ConfigError(cat("an all-reduce of ", time.bytes, " bytes over ", time.ranks,
                            " ranks in ", time.ms,
                            " ms cannot be fitted: at least 2 ranks, and "
                            "bytes and milliseconds above 0. Fix: leave it out"));
    }
    sizes.insert(time.bytes);
  }
  if (sizes.size() < 2) {
    throw ConfigError(cat("all-reduce times of ", sizes.size(),
                          " size(s), at least 2 different "
                          "ones are needed to tell latency from bandwidth. Fix: measure more "
                          "sizes"));
  }
  const Costs costs = solve(times);
  if (!(costs.byte_ms > 0)) {
    throw ConfigError(cat("the all-reduce times do not grow with size (", times.size(),
                          " of them), so that they have no bandwidth. Fix: measure larger sizes, "
                          "or give --link-gb-per-s and --latency-us"));
  }
  LinkFit fit;
  fit.link = {.latency_us = costs.message_ms * 1e3, .gb_per_s = 1e-6 / costs.byte_ms};
  for (const AllReduceTime& time : times) {
    const double fitted = messages_of(time) * costs.message_ms + moved_bytes(time) * costs.byte_ms;
    fit.worst_error_fraction =
        std::max(fit.worst_error_fraction, std::abs(fitted - time.ms) / time.ms);
  }
  return fit;
}

std::vector<AllReduceTime> all_reduce_times_from_text(std::string_view text,
                                                      const std::string& origin) {
  std::vector<AllReduceTime> times;
  const std::vector<std::string> lines = split(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (trimmed(lines[i]).empty()) continue;
    const std::string place = cat(escaped(origin), " line ", i + 1);
    const nlohmann::json json = parse_json(lines[i], place);
    if (!json.is_object()) {
      throw ConfigError(cat(place,
                            ": expected a JSON object such as "
                            "{\"ranks\":4,\"bytes\":1048576,\"ms\":1.25}, got ",
                            quoted(lines[i].substr(0, 80))));
    }
    const double ranks = number_of(json, "ranks", place);
    if (ranks != std::floor(ranks) || ranks < 2 || ranks > 1e6) {
      throw ConfigError(cat(place, ": \"ranks\" is ", ranks,
                            ", must be a whole number from 2 on. Fix: leave the line out"));
    }
    times.push_back({.ranks = static_cast<int64_t>(ranks),
                     .bytes = number_of(json, "bytes", place),
                     .ms = number_of(json, "ms", place)});
  }
  return times;
}

}  // namespace assay::estimate
