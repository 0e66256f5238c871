// Small line and stacked-area plots as inline SVG: title, axes with units, ticks, legend, no
// script.
#pragma once

#include <string>
#include <vector>

namespace assay::harness {

struct Point {
  double x = 0;
  double y = 0;
};

struct PlotLine {
  std::string label;
  std::vector<Point> points;  // x rising
  bool is_dashed = false;     // to be seen above a line that it covers
};

struct PlotMark {  // a vertical line
  double x = 0;
  std::string label;
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<PlotLine> lines;
  std::vector<PlotMark> marks;
  bool is_stacked = false;   // areas on top of each other; lines share their x values
  std::string no_data_text;  // shown when there is no point at all
};

// Non-finite points are left out of a line. Colours come from the page's CSS classes s0..s7.
std::string draw_svg(const Plot& plot);

// Round ticks that cover [low, high]: steps of 1, 2 or 5 times a power of ten.
std::vector<double> nice_ticks(double low, double high, int about);

}  // namespace assay::harness
