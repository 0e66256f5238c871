// `assay doctor`: the record of this machine, what looks wrong, and how to fix it.
#pragma once

#include <span>
#include <string>

namespace assay::platform {

// `words` are those after "doctor". Prints to standard output. Returns 0, or 6 if the GPU or the
// trainer cannot be used. Throws ConfigError for words it does not know.
int run_doctor_command(std::span<const std::string> words);

}  // namespace assay::platform
