#include "harness/report/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "harness/report/escape.h"

namespace assay::harness {
namespace {

// In SVG user units; the page scales the picture to its width.
constexpr double kWidth = 760, kHeight = 300;
constexpr double kLeft = 64, kRight = 16, kTop = 34, kBottom = 44;
constexpr size_t kColours = 8;

std::string place(double value) { return number_text(std::round(value * 10) / 10); }

class SvgWriter {
 public:
  explicit SvgWriter(const Plot& plot) : plot_(plot), lines_(plot.lines) {
    for (PlotLine& line : lines_) {
      std::erase_if(line.points,
                    [](const Point& p) { return !std::isfinite(p.x) || !std::isfinite(p.y); });
    }
    if (plot_.is_stacked) stack();
    find_range();
  }

  std::string write() {
    out_ = cat("<figure><svg viewBox=\"0 0 ", place(kWidth), " ", place(kHeight),
               "\" role=\"img\" aria-label=\"", markup_escaped(plot_.title), "\">\n",
               label(kWidth / 2, 16, "middle", plot_.title, "pt"));
    if (!has_data_) {
      out_ += label(kWidth / 2, kHeight / 2, "middle", plot_.no_data_text, "pl");
    } else {
      axes();
      // Sums are drawn from the top down, so that each lower one covers its part of the higher.
      for (size_t i = 0; i < lines_.size(); ++i) {
        draw(plot_.is_stacked ? lines_.size() - 1 - i : i);
      }
      marks();
    }
    out_ += "</svg>";
    if (has_data_) legend();
    return out_ + "</figure>\n";
  }

 private:
  // Each line becomes the sum of itself and those before it.
  void stack() {
    for (size_t i = 1; i < lines_.size(); ++i) {
      const size_t common = std::min(lines_[i].points.size(), lines_[i - 1].points.size());
      for (size_t k = 0; k < common; ++k) lines_[i].points[k].y += lines_[i - 1].points[k].y;
    }
  }

  void find_range() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    x_low_ = y_low_ = kInfinity;
    x_high_ = y_high_ = -kInfinity;
    for (const PlotLine& line : lines_) {
      for (const Point& point : line.points) {
        has_data_ = true;
        x_low_ = std::min(x_low_, point.x);
        x_high_ = std::max(x_high_, point.x);
        y_low_ = std::min(y_low_, point.y);
        y_high_ = std::max(y_high_, point.y);
      }
    }
    if (!has_data_) return;
    if (y_low_ > 0) y_low_ = 0;  // times and losses are read against zero
    if (x_high_ == x_low_) x_high_ = x_low_ + 1;
    if (y_high_ == y_low_) y_high_ = y_low_ + 1;
  }

  double x_of(double x) const {
    return kLeft + (x - x_low_) / (x_high_ - x_low_) * (kWidth - kLeft - kRight);
  }
  double y_of(double y) const {
    return kHeight - kBottom - (y - y_low_) / (y_high_ - y_low_) * (kHeight - kTop - kBottom);
  }

  static std::string label(double x, double y, std::string_view anchor, const std::string& text,
                           std::string_view style) {
    return cat("<text x=\"", place(x), "\" y=\"", place(y), "\" text-anchor=\"", anchor,
               "\" class=\"", style, "\">", markup_escaped(text), "</text>\n");
  }

  static std::string segment(Point from, Point to, std::string_view style) {
    return cat("<line x1=\"", place(from.x), "\" y1=\"", place(from.y), "\" x2=\"", place(to.x),
               "\" y2=\"", place(to.y), "\" class=\"", style, "\"/>\n");
  }

  void axes() {
    for (const double tick : nice_ticks(y_low_, y_high_, 5)) {
      out_ += segment({kLeft, y_of(tick)}, {kWidth - kRight, y_of(tick)}, "pg");
      out_ += label(kLeft - 6, y_of(tick) + 4, "end", shown_number(tick), "pl");
    }
    for (const double tick : nice_ticks(x_low_, x_high_, 8)) {
      out_ += segment({x_of(tick), kHeight - kBottom}, {x_of(tick), kHeight - kBottom + 4}, "pa");
      out_ += label(x_of(tick), kHeight - kBottom + 17, "middle", shown_number(tick), "pl");
    }
    out_ += segment({kLeft, kTop}, {kLeft, kHeight - kBottom}, "pa");
    out_ += segment({kLeft, kHeight - kBottom}, {kWidth - kRight, kHeight - kBottom}, "pa");
    out_ += label((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", plot_.x_label, "pl");
    out_ += label(kLeft, kTop - 6, "start", plot_.y_label, "pl");
  }

  void draw(size_t index) {
    const PlotLine& line = lines_[index];
    if (line.points.empty()) return;
    std::string points;
    for (const Point& point : line.points) {
      points += cat(place(x_of(point.x)), ",", place(y_of(point.y)), " ");
    }
    const std::string colour = cat("s", index % kColours);
    if (plot_.is_stacked) {
      out_ += cat("<polygon class=\"area ", colour, "\" points=\"",
                  place(x_of(line.points.front().x)), ",", place(y_of(0)), " ", points,
                  place(x_of(line.points.back().x)), ",", place(y_of(0)), "\"/>\n");
      return;
    }
    out_ += cat("<polyline class=\"line ", colour, line.is_dashed ? " dash" : "", "\" points=\"",
                points, "\"/>\n");
  }

  void marks() {
    double height = kTop + 12;
    for (const PlotMark& mark : plot_.marks) {
      if (mark.x < x_low_ || mark.x > x_high_) continue;
      const double x = x_of(mark.x);
      out_ += segment({x, kTop}, {x, kHeight - kBottom}, "pm");
      const bool is_right = x > kWidth * 0.6;
      out_ += label(is_right ? x - 4 : x + 4, height, is_right ? "end" : "start", mark.label, "pl");
      height += 14;  // labels of several marks do not cover each other
    }
  }

  void legend() {
    out_ += "<figcaption>";
    for (size_t i = 0; i < lines_.size(); ++i) {
      out_ +=
          cat("<span class=\"key\"><svg viewBox=\"0 0 18 10\" class=\"swatch\" "
              "aria-hidden=\"true\"><rect width=\"18\" height=\"10\" class=\"area s",
              i % kColours, "\"/></svg>", markup_escaped(lines_[i].label), "</span> ");
    }
    out_ += "</figcaption>";
  }

  const Plot& plot_;
  std::vector<PlotLine> lines_;
  bool has_data_ = false;
  double x_low_ = 0, x_high_ = 1, y_low_ = 0, y_high_ = 1;
  std::string out_;
};

}  // namespace

std::vector<double> nice_ticks(double low, double high, int about) {
  const double span = high - low;
  if (!(span > 0) || !std::isfinite(span) || about < 1) return {low};
  const double raw = span / about;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step >= raw) break;
  }
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (double k = first; k * step <= high + step * 1e-9; ++k) ticks.push_back(k * step);
  return ticks;
}

std::string draw_svg(const Plot& plot) { return SvgWriter(plot).write(); }

}  // namespace assay::harness
