// Resizes pixels as Pillow does with its bilinear filter (and torchvision on Pillow images): a
// triangle as wide as an output pixel when shrinking, first over columns, then over rows, weights
// as whole numbers of 2^-22, rounded to bytes after either pass. Gives Pillow's bytes; within one
// level of them for boxes much taller than wide, where Pillow 13 does rows first.
#pragma once

#include <vector>

#include "data/pixels.h"

namespace assay::data {

namespace resample_detail {
// Two neighbouring weights, each as high * 2^11 + low.
struct WeightPair {
  int16_t high[2] = {};
  int16_t low[2] = {};
};
struct RowPair {
  const unsigned char* a = nullptr;
  const unsigned char* b = nullptr;
};
}  // namespace resample_detail

// Which part of which result is computed.
struct ResampleTarget {
  ImageSize size;   // that the box would be resized to
  PixelBox window;  // what is kept of it
};

// Keeps its buffers for the next image. Thread-compatible.
class Resampler {
 public:
  // `box` lies in `pixels`; the filter sees the pixels beyond its edges. `output` gets the
  // window's size.
  void run(const RgbPixels& pixels, const RealBox& box, const ResampleTarget& target,
           RgbPixels& output);

 private:
  // The weights of one direction: output i is a sum over `counts[i]` inputs from `firsts[i]` on.
  struct Weights {
    int64_t stride = 0;  // weights an output; even
    std::vector<int64_t> firsts;
    std::vector<int64_t> counts;
    std::vector<resample_detail::WeightPair> pairs;
  };
  struct Span {
    double begin = 0;  // of the box
    double length = 0;
    int64_t input_size = 0;
    int64_t output_size = 0;
    int64_t first = 0;  // of the window
    int64_t count = 0;
  };
  void fill(const Span& span, Weights& weights);
  // Rows [first, end) of `pixels` into between_; and between_, which starts at row `first`, into
  // `output`.
  void shrink_columns(const RgbPixels& pixels, int64_t first, int64_t end);
  void shrink_rows(int64_t first, RgbPixels& output);

  Weights columns_;
  Weights rows_;
  std::vector<double> exact_;
  std::vector<resample_detail::RowPair> row_pairs_;  // of one output row
  RgbPixels between_;                                // columns done, rows not
};

}  // namespace assay::data
