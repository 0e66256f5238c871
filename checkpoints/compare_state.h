// Two checkpoints of one step, field by field and tensor by tensor. Internal to checkpoints/.
#pragma once

#include <string>

#include "checkpoints/compare.h"

namespace assay::checkpoints {

// Appends what differs to `comparison` and counts what was compared. Both are checkpoint folders,
// or folders that hold nothing but a manifest. Throws CheckpointError if one is damaged.
void compare_checkpoint_folders(const std::string& left, const std::string& right,
                                Comparison& comparison);

}  // namespace assay::checkpoints
