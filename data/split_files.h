// Which files of a folder (or of a pattern) belong to the training and to the held-out split.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::data {

struct SplitFiles {
  std::vector<std::string> train;  // in order; never empty
  std::vector<std::string> eval;   // may be empty
};

// Every name that a pattern stands for: {000..146} counts up with leading zeros as written
// (several groups multiply), '*' and '?' match within the last part of the path. Sorted bytewise
// where '*' or '?' occurs, else in counting order. Throws DataError if a counted file is missing,
// if nothing matches, or if the pattern is malformed; `what` names the data set.
std::vector<std::string> expand_pattern(const std::string& pattern, std::string_view what);
bool is_pattern(std::string_view path);

// `directory` may be
//   a folder with train/ and, or not, val/ in it: the files with that ending in each;
//   a folder with such files: those with val, valid, validation, eval or test as a word of their
//   name ("x_val_000.bin") are held out, the others trained on;
//   a pattern or a single file: trained on; held out are, if they exist, the files of the same
//   pattern with val in the place of train.
// Throws ConfigError if it is empty, DataError if there is nothing to train on.
SplitFiles find_split_files(const std::string& directory, std::string_view ending,
                            std::string_view what);

}  // namespace assay::data
