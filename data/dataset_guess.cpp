#include "data/dataset_guess.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/split_files.h"

namespace assay::data {
namespace {

using Names = std::vector<std::string>;

bool any_contains(const Names& names, std::string_view part) {
  return std::any_of(names.begin(), names.end(), [part](const std::string& name) {
    return name.find(part) != std::string::npos;
  });
}

bool any_ends(const Names& names, std::string_view ending) {
  return std::any_of(names.begin(), names.end(),
                     [ending](const std::string& name) { return name.ends_with(ending); });
}

Names entries_of(const std::string& folder) {
  try {
    Names names = list_directory(folder);
    const std::string train = join_path(folder, "train");  // train/ and val/ with the files
    if (is_directory(train)) {
      for (std::string& name : list_directory(train)) names.push_back(std::move(name));
    }
    return names;
  } catch (const FileError& error) {
    throw DataError(cat("assay data: ", error.what(), ". Fix: check the path"));
  }
}

// The set's own pair of names; token files are "train.bin" and "val.bin".
bool is_cifar100(const Names& names) {
  const auto has = [&names](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return has("cifar-100-binary") ||
         (has("train.bin") && has("test.bin") && has("fine_label_names.txt"));
}

std::string name_for_files(const Names& names) {
  if (any_ends(names, ".packed")) return "packed";
  if (any_ends(names, ".tar")) return "tar_shards";
  if (any_contains(names, "data_batch_") || any_contains(names, "cifar-10-")) return "cifar10";
  if (is_cifar100(names)) return "cifar100";
  if (any_ends(names, ".bin")) return "tokens";
  if (any_contains(names, "FashionMNIST")) return "fashion_mnist";
  if (any_contains(names, "-ubyte") || any_contains(names, "MNIST") || any_contains(names, "raw")) {
    return "mnist";
  }
  return "text";
}

}  // namespace

DataRequest guessed_request(const std::string& word, const std::string& directory) {
  DataRequest request;
  request.name = word;
  request.directory = directory;
  const std::span<const std::string_view> names = dataset_names();
  if (std::find(names.begin(), names.end(), word) != names.end()) {
    if (word == "synthetic") request.image_shape = {1, 28, 28};
    return request;
  }
  const bool is_path = path_exists(word) || is_pattern(word);
  if (!is_path) return request;
  if (!directory.empty()) {
    throw ConfigError(cat("assay data got the path ", quoted(word), " and --data_dir ",
                          quoted(directory), ", must be one of them. Fix: drop one"));
  }
  request.directory = word;
  if (is_directory(word)) {
    request.name = name_for_files(entries_of(word));
  } else {
    request.name = word.ends_with(".txt") ? "text" : name_for_files({word, "-ubyte"});
  }
  return request;
}

}  // namespace assay::data
