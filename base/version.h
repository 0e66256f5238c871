// What this build is: version, commit, and what it was built with. Filled in at build time.
#pragma once

#include <string>

namespace assay {

// "0.1.0".
std::string version_string();

// "GNU 12.2.0, Release".
std::string build_compiler();

// The 40 digits of the commit, with "-dirty" if tracked files differed; "unknown" outside git.
std::string git_commit();

// The LibTorch that assay-train was built with, e.g. "2.11.0"; "" in a build without LibTorch.
std::string build_libtorch_version();

// The CUDA that LibTorch was built for, e.g. "13.0"; "" in a build without CUDA.
std::string build_cuda_version();

// The NCCL of the build's headers, e.g. "2.28.9"; "" in a build without CUDA.
std::string build_nccl_version();

}  // namespace assay
