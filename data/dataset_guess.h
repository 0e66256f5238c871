// Which data set a word on the command line means: a name, or a path whose content says it.
#pragma once

#include <string>

#include "data/dataset.h"

namespace assay::data {

// Only name, directory and image_shape are filled in. A word that is neither is taken as a name,
// which open_data then refuses with those that exist. Throws ConfigError if a path is given twice,
// DataError if a folder cannot be read.
DataRequest guessed_request(const std::string& word, const std::string& directory);

}  // namespace assay::data
