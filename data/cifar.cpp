#include "data/cifar.h"

#include <algorithm>
#include <cstring>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/augment.h"
#include "data/idx_images.h"
#include "data/sample_random.h"
#include "data/sources.h"

namespace assay::data {
namespace {

constexpr int64_t kPadding = 4;  // He et al. 2016, sec. 4.2: black all around, then a crop

int64_t record_bytes(const CifarKind& kind) { return kind.label_bytes + kCifarPixels; }

struct CifarFiles {
  const CifarKind& kind;
  std::string_view folder;  // that the archive unpacks to
  std::vector<std::string> train;
  std::vector<std::string> eval;
  PixelStatistics statistics[3];
};

// Means and standard deviations of the training images' colours, x / 255.
const CifarFiles& cifar10_files() {
  static const CifarFiles files = {kCifar10,
                                   "cifar-10-batches-bin",
                                   {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                    "data_batch_4.bin", "data_batch_5.bin"},
                                   {"test_batch.bin"},
                                   {{0.4914F, 0.2470F}, {0.4822F, 0.2435F}, {0.4465F, 0.2616F}}};
  return files;
}

const CifarFiles& cifar100_files() {
  static const CifarFiles files = {kCifar100,
                                   "cifar-100-binary",
                                   {"train.bin"},
                                   {"test.bin"},
                                   {{0.5071F, 0.2673F}, {0.4865F, 0.2564F}, {0.4409F, 0.2762F}}};
  return files;
}

// Offsets of the crop, each 0 .. 2 * kPadding, and whether it is mirrored.
struct Move {
  int64_t right = kPadding;
  int64_t down = kPadding;
  bool is_flipped = false;
};

void move_plane(const unsigned char* from, const Move& move, unsigned char* to) {
  for (int64_t y = 0; y < kCifarSide; ++y, to += kCifarSide) {
    const int64_t from_y = y + move.down - kPadding;
    for (int64_t x = 0; x < kCifarSide; ++x) {
      const int64_t from_x = x + move.right - kPadding;
      const bool is_inside =
          from_x >= 0 && from_x < kCifarSide && from_y >= 0 && from_y < kCifarSide;
      to[move.is_flipped ? kCifarSide - 1 - x : x] =
          is_inside ? from[from_y * kCifarSide + from_x] : 0;
    }
  }
}

class CifarSamples : public Dataset {
 public:
  CifarSamples(CifarImages images, SampleSpec spec, bool is_augmented)
      : images_(std::move(images)), spec_(std::move(spec)), is_augmented_(is_augmented) {}
  int64_t size() const override { return static_cast<int64_t>(images_.labels.size()); }
  const SampleSpec& spec() const override { return spec_; }
  void read(int64_t id, std::span<unsigned char> features,
            std::span<int64_t> targets) const override {
    check_read(*this, id, features, targets);
    std::memcpy(features.data(), pixels_of(id), features.size());
    targets[0] = images_.labels[static_cast<size_t>(id)];
  }
  void read_for_training(const ReadContext& context, int64_t id, std::span<unsigned char> features,
                         std::span<int64_t> targets) const override {
    read(id, features, targets);
    if (!is_augmented_) return;
    SampleRandom crop(context, id, Purpose::kCrop);
    SampleRandom flip(context, id, Purpose::kFlip);
    Move move;
    move.down = crop.below(2 * kPadding + 1);
    move.right = crop.below(2 * kPadding + 1);
    move.is_flipped = random_flip(flip);
    constexpr int64_t kPlane = kCifarSide * kCifarSide;
    for (int64_t c = 0; c < 3; ++c) {
      move_plane(pixels_of(id) + c * kPlane, move, features.data() + c * kPlane);
    }
  }

 private:
  const unsigned char* pixels_of(int64_t id) const {
    return images_.pixels.data() + id * kCifarPixels;
  }

  CifarImages images_;
  SampleSpec spec_;
  bool is_augmented_;
};

bool has_all(const std::string& folder, const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return is_regular_file(join_path(folder, name));
  });
}

// The folder itself, or the one that the archive unpacks to in it.
std::string find_folder(const DataRequest& request, const CifarFiles& files,
                        const CifarFiles& other) {
  const std::string wanted = cat(join(files.train, ", "), " and ", join(files.eval, ", "));
  if (request.directory.empty()) {
    throw ConfigError(cat("dataset ", files.kind.name, " needs a folder with ", wanted,
                          ", and data_dir is empty. Fix: --data_dir FOLDER"));
  }
  const std::string inner = join_path(request.directory, files.folder);
  for (const std::string& folder : {request.directory, inner}) {
    if (has_all(folder, files.train) && has_all(folder, files.eval)) return folder;
  }
  const bool is_other = has_all(request.directory, other.train) ||
                        has_all(join_path(request.directory, other.folder), other.train);
  throw DataError(cat("data_dir ", quoted(request.directory), " has not all of ", wanted,
                      ", neither itself nor in ", files.folder, "/",
                      is_other ? cat("; it has the files of ", other.kind.name) : "", ". Fix: ",
                      is_other ? cat("--dataset ", other.kind.name) : "--data_dir FOLDER",
                      " (the binary version of the set)"));
}

void check_shape(const DataRequest& request, const CifarKind& kind) {
  const std::vector<int64_t> shape = {3, kCifarSide, kCifarSide};
  if (!request.is_tokens && (request.image_shape.empty() || request.image_shape == shape)) return;
  std::string wanted = "tokens";
  if (!request.is_tokens) {
    wanted = "images of";
    for (const int64_t size : request.image_shape) wanted += cat(" ", size);
  }
  throw ConfigError(cat("data set ", kind.name,
                        " has images of 3 32 32 (channels, height, width), "
                        "the model takes ",
                        wanted, ". Fix: e.g. --model resnet20_cifar, or model.image_size=32"));
}

OpenedSource open_cifar(const DataRequest& request, const CifarFiles& files,
                        const CifarFiles& other) {
  check_shape(request, files.kind);
  const std::string folder = find_folder(request, files, other);
  OpenedSource source;
  SampleSpec spec;
  spec.feature_shape = {3, kCifarSide, kCifarSide};
  spec.num_classes = files.kind.num_classes;
  for (const PixelStatistics& channel : files.statistics) {
    spec.mean.push_back(channel.mean);
    spec.stddev.push_back(channel.stddev);
  }
  for (const bool is_train : {true, false}) {
    CifarImages images;
    for (const std::string& name : is_train ? files.train : files.eval) {
      const std::string path = join_path(folder, name);
      const std::string bytes = read_source_file(path);
      add_cifar_images(bytes, path, files.kind, images);
      source.files.push_back({path, bytes.size(), sha256_hex(bytes)});
    }
    auto& split = is_train ? source.train : source.eval;
    split = std::make_unique<CifarSamples>(std::move(images), spec, is_train && request.augment);
  }
  source.recipe = request.augment ? cat("padding ", kPadding, ", random crop, flip") : "as stored";
  return source;
}

}  // namespace

void add_cifar_images(std::string_view file, const std::string& path, const CifarKind& kind,
                      CifarImages& images) {
  const CifarKind& other = kind.name == kCifar10.name ? kCifar100 : kCifar10;
  const auto record = static_cast<size_t>(record_bytes(kind));
  const auto other_record = static_cast<size_t>(record_bytes(other));
  if (file.empty() || file.size() % record != 0) {
    const bool is_other = !file.empty() && file.size() % other_record == 0;
    throw DataError(cat(path, " has ", file.size(), " bytes, must be a multiple of ", record,
                        ", the record of ", kind.name, " (", kind.label_bytes, " + ", kCifarPixels,
                        ")",
                        is_other ? cat("; it is one of ", other_record, ", the record of ",
                                       other.name, ", so it is a file of that set")
                                 : cat("; nor is it one of ", other_record, " (", other.name, ")"),
                        ". Fix: ", is_other ? cat("--dataset ", other.name) : "fetch it again"));
  }
  for (size_t begin = 0; begin < file.size(); begin += record) {
    const std::string_view bytes = file.substr(begin, record);
    const auto label = static_cast<unsigned char>(bytes[static_cast<size_t>(kind.label_bytes) - 1]);
    if (label >= kind.num_classes) {
      throw DataError(cat(path, ": label of record ", begin / record, " is ", int{label},
                          ", must be in [0, ", kind.num_classes - 1, "] for ", kind.name,
                          ". Fix: correct the file, or fetch it again"));
    }
    images.labels.push_back(label);
    const std::string_view pixels = bytes.substr(static_cast<size_t>(kind.label_bytes));
    images.pixels.insert(images.pixels.end(), pixels.begin(), pixels.end());
  }
}

OpenedSource open_cifar10(const DataRequest& request) {
  return open_cifar(request, cifar10_files(), cifar100_files());
}

OpenedSource open_cifar100(const DataRequest& request) {
  return open_cifar(request, cifar100_files(), cifar10_files());
}

}  // namespace assay::data
