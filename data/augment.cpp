#include "data/augment.h"

#include <algorithm>
#include <cmath>

namespace assay::data {
namespace {

constexpr double kSmallestArea = 0.08;
constexpr double kNarrowest = 3.0 / 4.0;
constexpr double kWidest = 4.0 / 3.0;
constexpr int kTries = 10;

// Python's round(): halves go to the even neighbour, the FPU's rounding mode at rest.
int64_t rounded(double value) { return std::llrint(value); }

PixelBox largest_in_the_middle(const ImageSize& image) {
  const auto width = static_cast<double>(image.width);
  const auto height = static_cast<double>(image.height);
  PixelBox box = {0, 0, image.width, image.height};
  if (width / height < kNarrowest) box.height = rounded(width / kNarrowest);
  if (width / height > kWidest) box.width = rounded(height * kWidest);
  box.left = (image.width - box.width) / 2;
  box.top = (image.height - box.height) / 2;
  return box;
}

}  // namespace

PixelBox random_resized_crop(const ImageSize& image, SampleRandom& random) {
  const double area = static_cast<double>(image.width) * static_cast<double>(image.height);
  const double log_narrowest = std::log(kNarrowest);
  const double log_widest = std::log(kWidest);
  for (int i = 0; i < kTries; ++i) {
    const double target = area * random.uniform(kSmallestArea, 1.0);
    const double aspect = std::exp(random.uniform(log_narrowest, log_widest));
    PixelBox box;
    box.width = rounded(std::sqrt(target * aspect));
    box.height = rounded(std::sqrt(target / aspect));
    if (box.width < 1 || box.width > image.width || box.height < 1 || box.height > image.height) {
      continue;
    }
    box.top = random.below(image.height - box.height + 1);
    box.left = random.below(image.width - box.width + 1);
    return box;
  }
  return largest_in_the_middle(image);
}

bool random_flip(SampleRandom& random) { return random.below(2) == 1; }

EvalFrame eval_frame(const ImageSize& image, const ImageSize& size) {
  // Sizes of the model are square.
  const int64_t shorter = eval_resize_of(std::max(size.width, size.height));
  EvalFrame frame;
  const int64_t least = std::min(image.width, image.height);
  // Cut, not rounded, as torchvision has it.
  frame.resized = {shorter * image.width / least, shorter * image.height / least};
  frame.crop = {rounded(static_cast<double>(frame.resized.width - size.width) / 2),
                rounded(static_cast<double>(frame.resized.height - size.height) / 2), size.width,
                size.height};
  return frame;
}

int64_t eval_resize_of(int64_t size) { return (size * 8 + 6) / 7; }

}  // namespace assay::data
