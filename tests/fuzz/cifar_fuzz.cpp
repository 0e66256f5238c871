// CIFAR-10's and CIFAR-100's binary files.
#include "base/error.h"
#include "data/cifar.h"
#include "tests/fuzz/fuzz_driver.h"

namespace assay::fuzz {
namespace {

void run_kind(const std::string& input, const data::CifarKind& kind) {
  data::CifarImages images;
  data::add_cifar_images(input, "fuzz.bin", kind, images);
  if (images.pixels.size() != images.labels.size() * static_cast<size_t>(data::kCifarPixels)) {
    throw InternalError("labels and pixels are not as many");
  }
  for (const unsigned char label : images.labels) {
    if (label >= kind.num_classes) throw InternalError("a label is out of range");
  }
}

void run(const std::string& input) {
  const bool is_ten = input.size() % (1 + data::kCifarPixels) == 0;
  run_kind(input, is_ten ? data::kCifar10 : data::kCifar100);
}

}  // namespace
}  // namespace assay::fuzz

int main(int count, char** words) {
  assay::fuzz::Target target;
  target.run = assay::fuzz::run;
  target.seeds = {std::string(3 * 3073, '\x3'), std::string(2 * 3074, '\x9')};
  return assay::fuzz::run_target(target, count, words);
}
