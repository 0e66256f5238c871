// `assay verify DIR`: re-checks the files of an acceptance folder against its SHA256SUMS.
#pragma once

#include <span>
#include <string>

namespace assay::harness {

// `words` are those after "verify". Prints what is missing, changed or extra; returns 0 or 6.
// Throws ConfigError (2) for a folder that is no finished acceptance.
int run_verify_command(std::span<const std::string> words);

}  // namespace assay::harness
