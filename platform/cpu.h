// Facts about the processors and how many of them this process may use.
#pragma once

#include "platform/cgroup.h"
#include "platform/environment.h"
#include "platform/roots.h"

namespace assay::platform {

CpuFacts read_cpu(const Roots& roots, const CgroupLimits& limits);

// Affinity mask, cpuset and quota together; the quota is rounded down; at least 1.
int64_t usable_cpus(const Roots& roots, const CgroupLimits& limits);

}  // namespace assay::platform
