// The report's plots, made from the metrics files that the scenarios' curves name.
#pragma once

#include <string>
#include <vector>

#include "harness/report/report.h"
#include "harness/report/svg_plot.h"

namespace assay::harness {

// Loss with the resumed runs above their controls; step time over steps; phases stacked. A metrics
// file that is missing or cannot be read gives an empty plot that says so.
std::vector<Plot> make_plots(const Report& report, Language language, const std::string& folder);

}  // namespace assay::harness
