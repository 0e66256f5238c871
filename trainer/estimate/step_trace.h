// One training step of a configuration, run on the shape device: its memory and its work.
#pragma once

#include "trainer/config/run_config.h"
#include "trainer/estimate/shape_device.h"
#include "trainer/estimate/traced_step.h"

namespace assay::estimate {

// Builds the model's shapes and runs two steps. Throws ConfigError for sizes that cannot be.
StepTrace trace_step(ShapeDevice& device, const config::RunConfig& config);

}  // namespace assay::estimate
