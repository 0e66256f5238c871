#include "data/resample.h"

#include <algorithm>
#include <cmath>

namespace assay::data {
namespace {

constexpr int kWeightBits = 22;  // 8 bits of pixel and 2 to spare fit beside it into 32
constexpr int32_t kHalf = int32_t{1} << (kWeightBits - 1);
constexpr int64_t kChannels = RgbPixels::kChannels;

unsigned char as_byte(int32_t sum) {
  return static_cast<unsigned char>(std::clamp(sum >> kWeightBits, 0, 255));
}

double triangle(double distance) { return std::max(0.0, 1.0 - std::fabs(distance)); }

}  // namespace

void Resampler::fill(const Span& span, Weights& weights) {
  const double scale = span.length / static_cast<double>(span.output_size);
  const double support = std::max(scale, 1.0);
  const auto input_size = static_cast<double>(span.input_size);
  weights.stride = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  weights.firsts.resize(static_cast<size_t>(span.count));
  weights.counts.resize(static_cast<size_t>(span.count));
  weights.values.assign(static_cast<size_t>(span.count * weights.stride), 0);
  exact_.resize(static_cast<size_t>(weights.stride));
  for (int64_t i = 0; i < span.count; ++i) {
    const double center = span.begin + (static_cast<double>(span.first + i) + 0.5) * scale;
    const auto first = static_cast<int64_t>(std::max(center - support + 0.5, 0.0));
    const auto end = static_cast<int64_t>(std::min(center + support + 0.5, input_size));
    const int64_t count = std::min(end - first, weights.stride);
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const double distance = (static_cast<double>(first + k) - center + 0.5) / support;
      exact_[static_cast<size_t>(k)] = triangle(distance);
      sum += exact_[static_cast<size_t>(k)];
    }
    weights.firsts[static_cast<size_t>(i)] = first;
    weights.counts[static_cast<size_t>(i)] = count;
    for (int64_t k = 0; k < count; ++k) {
      const double share = exact_[static_cast<size_t>(k)] / sum;
      weights.values[static_cast<size_t>(i * weights.stride + k)] =
          static_cast<int32_t>(0.5 + share * (1 << kWeightBits));
    }
  }
}

void Resampler::run(const RgbPixels& pixels, const RealBox& box, const ResampleTarget& target,
                    RgbPixels& output) {
  const PixelBox& window = target.window;
  fill({.begin = box.left,
        .length = box.width,
        .input_size = pixels.size().width,
        .output_size = target.size.width,
        .first = window.left,
        .count = window.width},
       columns_);
  fill({.begin = box.top,
        .length = box.height,
        .input_size = pixels.size().height,
        .output_size = target.size.height,
        .first = window.top,
        .count = window.height},
       rows_);
  const int64_t first_row = rows_.firsts.front();
  const int64_t end_row = rows_.firsts.back() + rows_.counts.back();
  between_.reset({window.width, end_row - first_row});
  output.reset({window.width, window.height});
  shrink_columns(pixels, first_row, end_row);
  shrink_rows(first_row, output);
}

void Resampler::shrink_columns(const RgbPixels& pixels, int64_t first, int64_t end) {
  const int64_t width = between_.size().width;
  for (int64_t y = first; y < end; ++y) {
    const unsigned char* from = pixels.row(y);
    unsigned char* to = between_.row(y - first);
    for (int64_t x = 0; x < width; ++x, to += kChannels) {
      const auto column = static_cast<size_t>(x);
      const int32_t* weight = columns_.values.data() + x * columns_.stride;
      const unsigned char* pixel = from + columns_.firsts[column] * kChannels;
      int32_t red = kHalf;
      int32_t green = kHalf;
      int32_t blue = kHalf;
      for (int64_t k = columns_.counts[column]; k > 0; --k, ++weight, pixel += kChannels) {
        red += *weight * pixel[0];
        green += *weight * pixel[1];
        blue += *weight * pixel[2];
      }
      to[0] = as_byte(red);
      to[1] = as_byte(green);
      to[2] = as_byte(blue);
    }
  }
}

void Resampler::shrink_rows(int64_t first, RgbPixels& output) {
  const int64_t row_bytes = output.size().width * kChannels;
  sums_.resize(static_cast<size_t>(row_bytes));
  int32_t* sums = sums_.data();
  for (int64_t y = 0; y < output.size().height; ++y) {
    const auto row = static_cast<size_t>(y);
    std::fill(sums_.begin(), sums_.end(), kHalf);
    for (int64_t k = 0; k < rows_.counts[row]; ++k) {
      const int32_t weight = rows_.values[static_cast<size_t>(y * rows_.stride + k)];
      const unsigned char* from = between_.row(rows_.firsts[row] - first + k);
      for (int64_t i = 0; i < row_bytes; ++i) sums[i] += weight * from[i];
    }
    unsigned char* to = output.row(y);
    for (int64_t i = 0; i < row_bytes; ++i) to[i] = as_byte(sums[i]);
  }
}

}  // namespace assay::data
