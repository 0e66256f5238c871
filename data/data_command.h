// `assay data info|verify|pack|tokenize`. Prints to stdout, progress of long work to stderr.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace assay::data {

// `words` are those behind "data". Returns the exit code; throws ConfigError for wrong usage and
// DataError for data that are missing or broken.
// `available_cpus`: threads that are used where --threads names none; 0: as many as there are CPUs.
int run_data_command(std::span<const std::string> words, int64_t available_cpus = 0);

}  // namespace assay::data
