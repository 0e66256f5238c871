// MNIST and Fashion-MNIST: four IDX files, plain or .gz, in a folder as torchvision lays it out.
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/idx_images.h"
#include "data/sources.h"

namespace assay::data {
namespace {

// Of the 60,000 training images, x / 255. MNIST: as in PyTorch's example; Fashion-MNIST: measured
// (0.286041, 0.353024).
constexpr PixelStatistics kMnistStatistics{.mean = 0.1307F, .stddev = 0.3081F};
constexpr PixelStatistics kFashionStatistics{.mean = 0.2860F, .stddev = 0.3530F};

constexpr const char* kFashionPackageFolder = "/usr/share/datasets/fashion-mnist";

// In the order of the manifest.
constexpr std::string_view kIdxNames[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                          "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

// SHA-256 of the published Fashion-MNIST files, unpacked, in the order of kIdxNames.
constexpr std::string_view kFashionHashes[] = {
    "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"};

std::string wanted_names() {
  return cat("the four IDX files ", kIdxNames[0], ", ", kIdxNames[1], ", ", kIdxNames[2], ", ",
             kIdxNames[3], " (plain or .gz)");
}

// "train-images-idx3-ubyte", also spelled "train-images.idx3-ubyte", each also with .gz.
std::optional<std::string> find_idx(const std::string& folder, std::string_view name) {
  std::string dotted(name);
  dotted[dotted.find("-idx")] = '.';
  for (const std::string& spelling : {std::string(name), dotted}) {
    for (const char* ending : {"", ".gz"}) {
      const std::string path = join_path(folder, spelling + ending);
      if (is_regular_file(path)) return path;
    }
  }
  return std::nullopt;
}

[[noreturn]] void refuse_not_a_folder(const std::string& directory) {
  std::string is = "does not exist";
  if (is_regular_file(directory)) {
    is = cat("is a file (", idx_appearance(read_source_file(directory).substr(0, 4)), ")");
  }
  throw DataError(cat("data_dir ", quoted(directory), " ", is, ", must be a folder with ",
                      wanted_names(), ". Fix: --data_dir FOLDER"));
}

// The folder itself, or where torchvision puts the files below its root.
std::string find_folder(const std::string& directory, std::string_view torchvision_name) {
  if (!is_directory(directory)) refuse_not_a_folder(directory);
  const std::string candidates[] = {directory, join_path(directory, "raw"),
                                    join_path(join_path(directory, torchvision_name), "raw")};
  for (const std::string& folder : candidates) {
    for (const std::string_view name : kIdxNames) {
      if (find_idx(folder, name)) return folder;
    }
  }
  throw DataError(cat("data_dir ", quoted(directory), " has none of ", wanted_names(),
                      ", neither itself nor in raw/ or ", torchvision_name,
                      "/raw/. Fix: --data_dir FOLDER that holds them"));
}

OpenedSource open_folder(const std::string& folder, const PixelStatistics& statistics) {
  std::vector<std::string> paths;
  std::vector<std::string> missing;
  for (const std::string_view name : kIdxNames) {
    const std::optional<std::string> path = find_idx(folder, name);
    if (path) paths.push_back(*path);
    if (!path) missing.emplace_back(name);
  }
  if (!missing.empty()) {
    throw DataError(cat(folder, " has ", paths.size(), " of 4 IDX files: ", join(missing, ", "),
                        missing.size() == 1 ? " is" : " are",
                        " missing (plain or .gz). Fix: put the files there"));
  }
  OpenedSource source;
  std::vector<std::vector<int64_t>> image_shapes;
  for (size_t first : {size_t{0}, size_t{2}}) {
    IdxArray images = read_idx_file(paths[first], IdxKind::kImages);
    IdxArray labels = read_idx_file(paths[first + 1], IdxKind::kLabels);
    source.files.push_back(images.source);
    source.files.push_back(labels.source);
    image_shapes.push_back(images.shape);
    auto& split = first == 0 ? source.train : source.eval;
    split = make_idx_images(std::move(images), std::move(labels), statistics);
  }
  const std::vector<int64_t>& train = image_shapes[0];
  const std::vector<int64_t>& eval = image_shapes[1];
  if (train[1] != eval[1] || train[2] != eval[2]) {
    throw DataError(cat(paths[2], " has images of ", eval[1], " x ", eval[2], ", ", paths[0],
                        " has ", train[1], " x ", train[2],
                        "; they must be equal. Fix: use the files of one set"));
  }
  source.recipe = "as stored";
  return source;
}

void check_published(const OpenedSource& source) {
  for (size_t i = 0; i < source.files.size(); ++i) {
    if (source.files[i].sha256 == kFashionHashes[i]) continue;
    throw DataError(cat(source.files[i].path, " has SHA-256 ", source.files[i].sha256,
                        " unpacked, the published file has ", kFashionHashes[i],
                        ". Fix: apt-get install --reinstall dataset-fashion-mnist, or give your "
                        "own files with --data_dir"));
  }
}

}  // namespace

OpenedSource open_mnist(const DataRequest& request) {
  if (request.directory.empty()) {
    throw DataError(cat("dataset mnist needs a folder with ", wanted_names(),
                        ", and data_dir is empty. Fix: --data_dir FOLDER, or --dataset digits, "
                        "which is embedded"));
  }
  return open_folder(find_folder(request.directory, "MNIST"), kMnistStatistics);
}

OpenedSource open_fashion_mnist(const DataRequest& request) {
  if (!request.directory.empty()) {
    return open_folder(find_folder(request.directory, "FashionMNIST"), kFashionStatistics);
  }
  if (!is_directory(kFashionPackageFolder)) {
    throw DataError(cat("dataset fashion_mnist is not installed: ", kFashionPackageFolder,
                        " does not exist, and data_dir is empty. Fix: apt-get install "
                        "dataset-fashion-mnist, or --data_dir FOLDER with ",
                        wanted_names()));
  }
  OpenedSource source = open_folder(kFashionPackageFolder, kFashionStatistics);
  check_published(source);
  return source;
}

}  // namespace assay::data
