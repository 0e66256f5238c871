#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/svg_plot.h"

namespace assay::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NiceTicks, AreRoundAndInside) {
  EXPECT_THAT(nice_ticks(0, 100, 5), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(nice_ticks(3, 9, 3), ElementsAre(4, 6, 8));
  EXPECT_THAT(nice_ticks(5, 5, 5), ElementsAre(5));
  EXPECT_THAT(nice_ticks(0, std::numeric_limits<double>::infinity(), 5), ElementsAre(0));
}

TEST(DrawSvg, NamesTitleAxesAndEveryLine) {
  Plot plot;
  plot.title = "Step time";
  plot.x_label = "step";
  plot.y_label = "milliseconds";
  plot.lines = {{"digits", {{1, 10}, {2, 12}}}, {"text", {{1, 20}, {2, 22}}, true}};
  plot.marks = {{2, "resumed here"}};
  const std::string svg = draw_svg(plot);
  for (const char* text :
       {"Step time", "step", "milliseconds", "digits", "text", "resumed here", "aria-label"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_THAT(svg, HasSubstr("class=\"line s1 dash\""));
}

TEST(DrawSvg, StacksAreasUpToTheirSum) {
  Plot plot;
  plot.is_stacked = true;
  plot.lines = {{"forward", {{1, 4}, {2, 4}}}, {"backward", {{1, 6}, {2, 6}}}};
  const std::string svg = draw_svg(plot);
  // The taller sum reaches the top of the drawing area (y = 34) and is drawn first.
  EXPECT_LT(svg.find("area s1\" points"), svg.find("area s0\" points"));
  EXPECT_THAT(svg, HasSubstr(",34 "));
}

TEST(DrawSvg, SaysWhenThereIsNothingToDraw) {
  Plot plot;
  plot.no_data_text = "no data";
  plot.lines = {{"loss", {{1, std::numeric_limits<double>::quiet_NaN()}}}};
  EXPECT_THAT(draw_svg(plot), HasSubstr("no data"));
}

}  // namespace
}  // namespace assay::harness
