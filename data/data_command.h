// `assay data info|verify`: facts about a data set, for people and as JSON. Prints to stdout.
#pragma once

#include <span>
#include <string>

namespace assay::data {

// `words` are those behind "data". Returns the exit code; throws ConfigError for wrong usage and
// DataError for data that are missing or broken.
int run_data_command(std::span<const std::string> words);

}  // namespace assay::data
