// `assay accept`: parses the options, runs the acceptance, prints the verdict and where the report
// is.
#pragma once

#include <span>
#include <string>

namespace assay::harness {

// `words` are those after "accept". Returns 0 pass, 6 fail, 8 could not run, 128+N interrupted by
// signal N. Throws ConfigError (2) for usage, CouldNotRunError (8) if there is no trainer or the
// output folder cannot be written.
int run_accept_command(std::span<const std::string> words);

}  // namespace assay::harness
