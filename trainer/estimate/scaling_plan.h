// From a traced step and what was measured to the prediction for N ranks. Torch-free.
#pragma once

#include <cstdint>
#include <functional>

#include "trainer/config/run_config.h"
#include "trainer/estimate/estimate.h"
#include "trainer/estimate/estimate_options.h"
#include "trainer/estimate/run_measurement.h"

namespace assay::estimate {

// The largest part of a sharded optimizer that one of so many ranks keeps, as a fraction.
using LargestShare = std::function<double(int64_t ranks)>;

// `measured`: the run of --from-run; null without it. Throws ConfigError for links that cannot be
// fitted.
Scaling plan_scaling(const StepTrace& trace, const config::RunConfig& config,
                     const EstimateOptions& options, const Card& card, const MeasuredRun* measured,
                     const LargestShare& largest_share);

}  // namespace assay::estimate
