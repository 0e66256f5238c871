// One function a data set, called by open_data; and what they share. Not for other folders.
#pragma once

#include <string>

#include "data/dataset.h"

namespace assay::data {

// What a source opened. open_data adds name, limits and digest.
struct OpenedSource {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> eval;
  std::vector<SourceFile> files;
  std::string recipe;  // what was done to the files' content; part of the digest
};

OpenedSource open_cifar10(const DataRequest& request);
OpenedSource open_cifar100(const DataRequest& request);
OpenedSource open_digits(const DataRequest& request);
OpenedSource open_mnist(const DataRequest& request);
OpenedSource open_fashion_mnist(const DataRequest& request);
OpenedSource open_synthetic(const DataRequest& request);
OpenedSource open_image_folder(const DataRequest& request);
OpenedSource open_tar_shards(const DataRequest& request);
OpenedSource open_packed(const DataRequest& request);
OpenedSource open_tokens(const DataRequest& request);
OpenedSource open_text(const DataRequest& request);

// Whole file; a failure becomes a DataError that says to check --data_dir.
std::string read_source_file(const std::string& path);

// Throws ConfigError if a directory is given to a data set that reads none.
void refuse_directory(const DataRequest& request, const std::string& why);

// Throws InternalError unless 0 <= id < dataset.size() and the spans have a sample's sizes.
void check_read(const Dataset& dataset, int64_t id, std::span<unsigned char> features,
                std::span<int64_t> targets);

}  // namespace assay::data
