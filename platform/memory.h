// Facts about main memory, swap, shared memory and the limits on them.
#pragma once

#include "platform/cgroup.h"
#include "platform/environment.h"
#include "platform/roots.h"

namespace assay::platform {

MemoryFacts read_memory(const Roots& roots, const CgroupLimits& limits);

}  // namespace assay::platform
