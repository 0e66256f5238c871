#include "data/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace assay::data {
namespace {

using resample_detail::RowPair;
using resample_detail::WeightPair;

constexpr int kWeightBits = 22;  // 8 bits of pixel and 2 to spare fit beside it into 32
constexpr int32_t kHalf = int32_t{1} << (kWeightBits - 1);
constexpr int64_t kChannels = RgbPixels::kChannels;

// A weight is `high` * 2^11 + `low`: halves that fit into 16 bits, so that vectors multiply two
// neighbours at once; the sums are the same whole numbers in any order.
constexpr int kLowBits = 11;

double triangle(double distance) { return std::max(0.0, 1.0 - std::fabs(distance)); }

#ifdef __SSE2__

__m128i both(const int16_t (&halves)[2]) {
  int32_t word = 0;
  std::memcpy(&word, halves, sizeof(word));
  return _mm_set1_epi32(word);
}

__m128i load_8(const unsigned char* bytes) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
}

// Sums of high and low halves to bytes, in the low byte of each 32-bit word.
__m128i as_words(__m128i high, __m128i low) {
  const __m128i sum = _mm_add_epi32(_mm_slli_epi32(high, kLowBits), low);
  return _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(kHalf)), kWeightBits);
}

void sum_pixels(const unsigned char* pixel, const WeightPair* weights, int64_t num_pairs,
                unsigned char* to) {
  const __m128i zero = _mm_setzero_si128();
  __m128i high = zero;
  __m128i low = zero;
  for (int64_t k = 0; k < num_pairs; ++k, pixel += 2 * kChannels) {
    const __m128i colours = _mm_unpacklo_epi8(load_8(pixel), zero);  // r g b r' g' b' - -
    const __m128i pairs = _mm_unpacklo_epi16(colours, _mm_srli_si128(colours, 6));  // r r' g g' ..
    high = _mm_add_epi32(high, _mm_madd_epi16(pairs, both(weights[k].high)));
    low = _mm_add_epi32(low, _mm_madd_epi16(pairs, both(weights[k].low)));
  }
  const __m128i words = _mm_packs_epi32(as_words(high, low), zero);
  const int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, zero));
  std::memcpy(to, &bytes, sizeof(bytes));  // the fourth is overwritten by the next pixel
}

void sum_rows(const std::vector<RowPair>& rows, const WeightPair* weights, int64_t row_bytes,
              unsigned char* to) {
  const __m128i zero = _mm_setzero_si128();
  for (int64_t i = 0; i < row_bytes; i += 8) {
    __m128i high[2] = {zero, zero};
    __m128i low[2] = {zero, zero};
    for (size_t k = 0; k < rows.size(); ++k) {
      const __m128i bytes = _mm_unpacklo_epi8(load_8(rows[k].a + i), load_8(rows[k].b + i));
      const __m128i pairs[2] = {_mm_unpacklo_epi8(bytes, zero), _mm_unpackhi_epi8(bytes, zero)};
      for (int half = 0; half < 2; ++half) {
        high[half] = _mm_add_epi32(high[half], _mm_madd_epi16(pairs[half], both(weights[k].high)));
        low[half] = _mm_add_epi32(low[half], _mm_madd_epi16(pairs[half], both(weights[k].low)));
      }
    }
    const __m128i words = _mm_packs_epi32(as_words(high[0], low[0]), as_words(high[1], low[1]));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + i), _mm_packus_epi16(words, zero));
  }
}

#else

unsigned char as_byte(int32_t sum) {
  return static_cast<unsigned char>(std::clamp(sum >> kWeightBits, 0, 255));
}

int32_t weight_of(const WeightPair& pair, int which) {
  return (int32_t{pair.high[which]} << kLowBits) + pair.low[which];
}

void sum_pixels(const unsigned char* pixel, const WeightPair* weights, int64_t num_pairs,
                unsigned char* to) {
  for (int c = 0; c < kChannels; ++c) {
    int32_t sum = kHalf;
    for (int64_t k = 0; k < num_pairs; ++k) {
      sum += weight_of(weights[k], 0) * pixel[2 * kChannels * k + c];
      sum += weight_of(weights[k], 1) * pixel[2 * kChannels * k + kChannels + c];
    }
    to[c] = as_byte(sum);
  }
}

void sum_rows(const std::vector<RowPair>& rows, const WeightPair* weights, int64_t row_bytes,
              unsigned char* to) {
  for (int64_t i = 0; i < row_bytes; ++i) {
    int32_t sum = kHalf;
    for (size_t k = 0; k < rows.size(); ++k) {
      sum += weight_of(weights[k], 0) * rows[k].a[i] + weight_of(weights[k], 1) * rows[k].b[i];
    }
    to[i] = as_byte(sum);
  }
}

#endif

}  // namespace

void Resampler::fill(const Span& span, Weights& weights) {
  const double scale = span.length / static_cast<double>(span.output_size);
  const double support = std::max(scale, 1.0);
  const auto input_size = static_cast<double>(span.input_size);
  weights.stride = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  weights.firsts.resize(static_cast<size_t>(span.count));
  weights.counts.resize(static_cast<size_t>(span.count));
  weights.stride += weights.stride % 2;  // a pair may reach one beyond
  weights.pairs.assign(static_cast<size_t>(span.count * weights.stride / 2), WeightPair{});
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
      const auto weight = static_cast<int32_t>(0.5 + share * (1 << kWeightBits));
      WeightPair& pair = weights.pairs[static_cast<size_t>((i * weights.stride + k) / 2)];
      pair.high[k % 2] = static_cast<int16_t>(weight >> kLowBits);
      pair.low[k % 2] = static_cast<int16_t>(weight & ((1 << kLowBits) - 1));
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
      sum_pixels(from + columns_.firsts[column] * kChannels,
                 columns_.pairs.data() + x * columns_.stride / 2, (columns_.counts[column] + 1) / 2,
                 to);
    }
  }
}

void Resampler::shrink_rows(int64_t first, RgbPixels& output) {
  const int64_t row_bytes = output.size().width * kChannels;
  for (int64_t y = 0; y < output.size().height; ++y) {
    const auto row = static_cast<size_t>(y);
    // Of an odd number the last pair's second row has no weight; the first one stands in for it.
    const int64_t num_pairs = (rows_.counts[row] + 1) / 2;
    row_pairs_.clear();
    for (int64_t k = 0; k < num_pairs; ++k) {
      const int64_t a = rows_.firsts[row] - first + 2 * k;
      const int64_t b = 2 * k + 1 < rows_.counts[row] ? a + 1 : a;
      row_pairs_.push_back({between_.row(a), between_.row(b)});
    }
    const WeightPair* weights = rows_.pairs.data() + y * rows_.stride / 2;
    sum_rows(row_pairs_, weights, row_bytes, output.row(y));
  }
}

}  // namespace assay::data
