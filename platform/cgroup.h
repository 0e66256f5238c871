// The limits that control groups set on this process: version 1, version 2 and both mixed. Every
// level from the process's own group up to the root counts; the smallest limit rules.
#pragma once

#include <cstdint>

#include "platform/roots.h"

namespace assay::platform {

struct CgroupLimits {
  double quota_cpus = 0;            // CPU time a second, in CPUs; 0: no quota
  int64_t cpuset_cpus = 0;          // CPUs the group may use; 0: not known
  uint64_t memory_limit_bytes = 0;  // 0: none
  // What may still be allocated below the tightest limit (page cache that the kernel can drop
  // counts as free); meaningful only with a limit.
  uint64_t memory_room_bytes = 0;
};

CgroupLimits read_cgroup_limits(const Roots& roots);

}  // namespace assay::platform
