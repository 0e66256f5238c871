// Which mount a folder lies on, and how much room is there.
#pragma once

#include <string>
#include <vector>

#include "platform/environment.h"
#include "platform/mountinfo.h"
#include "platform/roots.h"

namespace assay::platform {

// A folder that does not exist yet is answered for its nearest existing parent.
MountFacts read_mount(const Roots& roots, const std::vector<MountEntry>& mounts,
                      const std::string& path);

}  // namespace assay::platform
