// The record taken from given roots: what record_environment does, open to fixture trees.
#pragma once

#include <string>
#include <vector>

#include "platform/environment.h"
#include "platform/roots.h"

namespace assay::platform {

Environment record_environment_of(const Roots& roots, const std::vector<std::string>& paths);

}  // namespace assay::platform
