// The embedded handwritten digits: 1,797 images of 8x8, enlarged to 28x28 when opened.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "data/embedded_samples.h"
#include "data/idx_images.h"
#include "data/sources.h"

namespace assay::data {
namespace {

constexpr int64_t kSmall = 8;         // height and width of the originals
constexpr int64_t kLarge = 28;        // what MNIST's models take
constexpr int64_t kMaxValue = 16;     // originals are counts 0..16
constexpr int64_t kHeldOutEvery = 6;  // sample i is held out when i % 6 == 5
constexpr int64_t kHeldOutRest = 5;

// Measured over all pixels of the 1,498 enlarged training images, x / 255, population deviation
// (0.305422312, 0.324774093).
constexpr PixelStatistics kStatistics{.mean = 0.3054F, .stddev = 0.3248F};

// Bilinear weights as in torch's interpolate(mode="bilinear", align_corners=False): source place
// (x + 0.5) * 8 / 28 - 0.5 = (4 x - 5) / 14, not below 0. Exact in fourteenths.
constexpr int64_t kParts = 14;
struct Tap {
  int64_t low = 0;  // source index; the other one is low + 1, at most 7
  int64_t high = 0;
  int64_t high_part = 0;  // weight of `high` in fourteenths
};

Tap tap_at(int64_t place) {
  const int64_t source = std::max<int64_t>(4 * place - 5, 0);
  const int64_t low = source / kParts;
  return {low, std::min(low + 1, kSmall - 1), source % kParts};
}

// value * 255 / 16 at every place, rounded to nearest, exact halves up. Integers throughout, so
// that every machine makes the same bytes; torch in floating point rounds exact halves (127.5)
// either way, all other pixels are equal.
void enlarge(const unsigned char* small, unsigned char* large) {
  constexpr int64_t kDivisor = kParts * kParts * kMaxValue;
  for (int64_t y = 0; y < kLarge; ++y) {
    const Tap row = tap_at(y);
    for (int64_t x = 0; x < kLarge; ++x) {
      const Tap column = tap_at(x);
      const auto blend = [&column, small](int64_t source_row) {
        const unsigned char* line = small + source_row * kSmall;
        return (kParts - column.high_part) * line[column.low] +
               column.high_part * line[column.high];
      };
      const int64_t sum =
          (kParts - row.high_part) * blend(row.low) + row.high_part * blend(row.high);
      large[y * kLarge + x] =
          static_cast<unsigned char>((2 * 255 * sum + kDivisor) / (2 * kDivisor));
    }
  }
}

// An IDX array made from some of the digits.
struct Split {
  IdxArray images;
  IdxArray labels;
};

Split pick_split(const IdxArray& images, const IdxArray& labels, bool is_held_out) {
  Split split;
  int64_t count = 0;
  for (int64_t i = 0; i < images.shape[0]; ++i) {
    if ((i % kHeldOutEvery == kHeldOutRest) != is_held_out) continue;
    const auto index = static_cast<size_t>(i);
    std::array<unsigned char, kLarge * kLarge> large{};
    enlarge(images.values().data() + index * kSmall * kSmall, large.data());
    split.images.content.append(reinterpret_cast<const char*>(large.data()), large.size());
    split.labels.content.push_back(static_cast<char>(labels.values()[index]));
    ++count;
  }
  split.images.shape = {count, kLarge, kLarge};
  split.labels.shape = {count};
  split.images.source = images.source;
  split.labels.source = labels.source;
  return split;
}

}  // namespace

OpenedSource open_digits(const DataRequest& request) {
  refuse_directory(request, "the digits are embedded in the program");
  const IdxArray images = parse_idx(std::string(embedded_digits_images()),
                                    "embedded:digits-images-idx3-ubyte", IdxKind::kImages);
  const IdxArray labels = parse_idx(std::string(embedded_digits_labels()),
                                    "embedded:digits-labels-idx1-ubyte", IdxKind::kLabels);
  check_labels(images, labels);
  if (images.shape[1] != kSmall || images.shape[2] != kSmall) {
    throw InternalError(cat("the embedded digits are ", images.shape[1], " x ", images.shape[2],
                            ", must be 8 x 8"));
  }
  Split train = pick_split(images, labels, false);
  Split eval = pick_split(images, labels, true);
  OpenedSource source;
  source.train = make_idx_images(std::move(train.images), std::move(train.labels), kStatistics);
  source.eval = make_idx_images(std::move(eval.images), std::move(eval.labels), kStatistics);
  source.files = {images.source, labels.source};
  source.recipe = "bilinear 28, held out i % 6 == 5";
  return source;
}

}  // namespace assay::data
