// Fits latency and bandwidth of a link to measured all-reduce times. Pure; no torch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/estimate/scaling_model.h"

namespace assay::estimate {

struct AllReduceTime {
  int64_t ranks = 0;
  double bytes = 0;
  double ms = 0;
};

struct LinkFit {
  Link link;
  double worst_error_fraction = 0;  // of the fitted against the measured times
};

// Least squares of the relative errors of the ring's time, linear in latency and 1 / bandwidth. A
// latency that would come out below 0 becomes 0. Throws ConfigError without two different sizes and
// for times that do not grow with size.
LinkFit fit_link(std::span<const AllReduceTime> times);

// One JSON object a line: {"ranks":4,"bytes":1048576,"ms":1.25}; other members are left alone,
// empty lines too. Throws ConfigError naming `origin`, line, value and what is expected.
std::vector<AllReduceTime> all_reduce_times_from_text(std::string_view text,
                                                      const std::string& origin);

}  // namespace assay::estimate
