// Arms fault points for one test and disarms them at its end.
#pragma once

#include <string>

#include "base/fault_points.h"

namespace assay::data {

class ArmedFaults {
 public:
  explicit ArmedFaults(const std::string& rules) { arm_faults(rules); }
  ~ArmedFaults() { disarm_faults(); }
  ArmedFaults(const ArmedFaults&) = delete;
  ArmedFaults& operator=(const ArmedFaults&) = delete;
};

}  // namespace assay::data
