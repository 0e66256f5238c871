// The data set `image_folder`: train/<class>/*.jpg and val/<class>/*.jpg, the layout that ImageNet
// is unpacked to. Classes are the folders of train/, sorted bytewise; folders within a class belong
// to it.
#include <algorithm>
#include <map>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/image_decoding.h"
#include "data/sources.h"

namespace assay::data {
namespace {

constexpr std::string_view kReadable[] = {".jpg", ".jpeg", ".png"};
// Images to others: leaving them out without a word would change the data.
constexpr std::string_view kUnreadable[] = {".bmp", ".gif",  ".pgm", ".ppm",
                                            ".tif", ".tiff", ".webp"};
constexpr std::string_view kLayout = "train/<class>/*.jpg, *.jpeg or *.png, and val/ likewise";

bool has_ending(const std::string& name, std::span<const std::string_view> endings) {
  std::string lower = name;
  for (char& letter : lower) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return lower.ends_with(ending); });
}

struct ImageList {
  std::vector<std::string> paths;  // below the split's folder
  std::vector<int32_t> labels;
};

class FolderImages : public EncodedImages {
 public:
  FolderImages(std::string folder, ImageList list)
      : folder_(std::move(folder)), list_(std::move(list)) {}
  int64_t size() const override { return static_cast<int64_t>(list_.paths.size()); }
  int64_t label(int64_t id) const override { return list_.labels.at(static_cast<size_t>(id)); }
  void read(int64_t id, std::string& bytes) const override { bytes = read_source_file(origin(id)); }
  std::string origin(int64_t id) const override {
    return join_path(folder_, list_.paths.at(static_cast<size_t>(id)));
  }

 private:
  std::string folder_;
  ImageList list_;
};

// Entries that start with a dot are the system's.
std::vector<std::string> entries_of(const std::string& folder) {
  try {
    std::vector<std::string> names = list_directory(folder);
    std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
    std::sort(names.begin(), names.end());
    return names;
  } catch (const FileError& error) {
    throw DataError(cat("data set image_folder: ", error.what(), ". Fix: check --data_dir"));
  }
}

std::vector<std::string> classes_of(const std::string& folder) {
  std::vector<std::string> classes = entries_of(folder);
  std::erase_if(classes,
                [&](const std::string& name) { return !is_directory(join_path(folder, name)); });
  return classes;
}

// Adds the images at and below root/path, a class's folder or one within it.
void add_images(const std::string& root, const std::string& path, int32_t label, ImageList& list) {
  constexpr size_t kDeepest = 64;
  if (static_cast<size_t>(std::count(path.begin(), path.end(), '/')) > kDeepest) {
    throw DataError(cat("data set image_folder: ", join_path(root, path), " is ", kDeepest,
                        " folders deep. Fix: is a link going round in circles?"));
  }
  for (const std::string& name : entries_of(join_path(root, path))) {
    const std::string inner = join_path(path, name);
    if (has_ending(name, kReadable)) {
      list.paths.push_back(inner);
      list.labels.push_back(label);
    } else if (has_ending(name, kUnreadable)) {
      throw DataError(cat("data set image_folder: ", join_path(root, inner),
                          " is neither JPEG nor PNG. Fix: convert or remove such files"));
    } else if (is_directory(join_path(root, inner))) {
      add_images(root, inner, label, list);
    }
  }
}

// `labels` is what train/ has.
ImageList list_split(const std::string& folder, const std::map<std::string, int32_t>& labels) {
  ImageList list;
  for (const std::string& name : classes_of(folder)) {
    const auto label = labels.find(name);
    if (label == labels.end()) {
      throw DataError(cat("data set image_folder: ", join_path(folder, name),
                          " is a class that train/ has not (it has ", labels.size(),
                          "). Fix: make the folders of both the same"));
    }
    const size_t before = list.paths.size();
    add_images(folder, name, label->second, list);
    if (list.paths.size() > before) continue;
    throw DataError(cat("data set image_folder: the class ", join_path(folder, name),
                        " has no images (*.jpg, *.jpeg, *.png). Fix: remove the folder, or put "
                        "them there"));
  }
  return list;
}

void check_directory(const DataRequest& request) {
  if (request.directory.empty()) {
    throw ConfigError(cat("dataset image_folder needs a folder with ", kLayout,
                          ", and data_dir is empty. Fix: --data_dir FOLDER"));
  }
  if (is_directory(join_path(request.directory, "train"))) return;
  throw DataError(cat("data_dir ", quoted(request.directory),
                      is_directory(request.directory) ? " has no train/ in it" : " is no folder",
                      ", must hold ", kLayout, ". Fix: --data_dir FOLDER"));
}

}  // namespace

OpenedSource open_image_folder(const DataRequest& request) {
  check_directory(request);
  OpenedSource source;
  const std::string train_folder = join_path(request.directory, "train");
  const std::string val_folder = join_path(request.directory, "val");
  std::map<std::string, int32_t> labels;
  for (const std::string& name : classes_of(train_folder)) {
    labels.emplace(name, static_cast<int32_t>(labels.size()));
  }
  ImageList train = list_split(train_folder, labels);
  ImageList val;
  if (is_directory(val_folder)) val = list_split(val_folder, labels);
  // The files are not looked into: a hash over a million of them would take longer than a run.
  std::string names;
  for (const ImageList* list : {&train, &val}) {
    for (const std::string& path : list->paths) names += path + '\n';
    names += '\n';
  }
  source.recipe = cat("names ", sha256_hex(names), "; ");
  return open_image_samples({std::make_unique<FolderImages>(train_folder, std::move(train)),
                             std::make_unique<FolderImages>(val_folder, std::move(val))},
                            std::move(source), request, make_image_decoding);
}

}  // namespace assay::data
