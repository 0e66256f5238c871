// How busy the whole machine is, from /proc/stat: what other programs take while a trial is timed.
#pragma once

#include <optional>

namespace assay::harness {

struct MachineUse {
  double busy_seconds = 0;    // CPU time of everything since boot, stolen time included
  double stolen_seconds = 0;  // time a hypervisor gave to others
  double at_seconds = 0;      // monotonic_seconds()
};

// Nothing where /proc/stat cannot be read.
std::optional<MachineUse> read_machine_use();

// CPU time of all but `own_cpu_seconds` between two readings, as a fraction of `cpus` CPUs; >= 0.
double other_use_fraction(const MachineUse& before, const MachineUse& after, double own_cpu_seconds,
                          double cpus);

}  // namespace assay::harness
