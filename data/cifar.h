// CIFAR-10's and CIFAR-100's binary files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace assay::data {

constexpr int64_t kCifarSide = 32;
constexpr int64_t kCifarPixels = 3 * kCifarSide * kCifarSide;  // planes of red, green, blue

// A record is the label bytes and then the pixels.
struct CifarKind {
  std::string_view name;
  int64_t label_bytes = 1;  // the last one is the label
  int64_t num_classes = 10;
};
inline constexpr CifarKind kCifar10 = {"cifar10", 1, 10};
inline constexpr CifarKind kCifar100 = {"cifar100", 2, 100};  // coarse, fine

struct CifarImages {
  std::vector<unsigned char> pixels;  // kCifarPixels an image
  std::vector<unsigned char> labels;
};

// Appends the images of one file's bytes. Throws DataError naming `path`: a length that is no
// multiple of the record's (naming the other kind if it is one of that), a label out of range.
void add_cifar_images(std::string_view file, const std::string& path, const CifarKind& kind,
                      CifarImages& images);

}  // namespace assay::data
