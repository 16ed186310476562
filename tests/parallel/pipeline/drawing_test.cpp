#include "catena/parallel/pipeline/drawing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include "catena/core/error.h"
#include "catena/parallel/pipeline/schedules.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena::parallel::pipeline {
namespace {

TEST(Drawing, OneForwardOneBackwardAsText) {
  EXPECT_EQ(draw_text(simulate(one_forward_one_backward(3, 4))),
            "1f1b: 3 stages on 3 ranks, 4 micro-batches, 18 s, bubble 33.33 %, at most 3 bytes on "
            "a rank\n"
            "rank 0  0  1  2  .  .  .  . B0  =  3 B1  =  . B2  =  . B3  =\n"
            "rank 1  .  0  1  .  . B0  =  2 B1  =  3 B2  =  . B3  =  .  .\n"
            "rank 2  .  .  0 B0  =  1 B1  =  2 B2  =  3 B3  =  .  .  .  .\n");
}

TEST(Drawing, HalvesAndUpdates) {
  Costs costs;
  costs.stages[0].update = 1;
  EXPECT_EQ(
      draw_text(simulate(with_updates(zero_bubble(2, 2)), costs)),
      "zero bubble: 2 stages on 2 ranks, 2 micro-batches, 8 s, bubble 12.5 %, at most 2 bytes on "
      "a rank\n"
      "rank 0  0  1  . I0 W0 I1 W1  U\n"
      "rank 1  .  0 I0  1 I1 W0 W1  U\n");
}

TEST(Drawing, StagesOfARankHaveLetters) {
  const std::string text = draw_text(simulate(zb_v(2, 1)));
  expect_contains(
      text, {"rank 0  0a   .   .  0b I0b W0b   . I0a W0a\n", "rank 1   .  0a  0b   .   . I0b"});
}

TEST(Drawing, WideSchedulesGoOnBelow) {
  const Simulation result = simulate(one_forward_one_backward(2, 12));
  const std::string text = draw_text(result, {.width = 40});
  std::istringstream lines(text);
  std::string line, title;
  std::getline(lines, title);
  int blocks = 0, rows = 0;
  while (std::getline(lines, line)) {
    EXPECT_LE(line.size(), 40u);
    blocks += line.rfind("from ", 0) == 0;
    rows += line.rfind("rank ", 0) == 0;
  }
  EXPECT_EQ(blocks, (39 + 7) / 8);  // 39 s, 8 columns of 4 characters
  EXPECT_EQ(rows, 2 * blocks);
  expect_contains(text, {"from 0 s", "from 8 s", " B11"});
  expect_contains(error_of<ValueError>([&] { draw_text(result, {.width = 9}); }),
                  {"draw_text", "width of 9", "at least 10"});
}

TEST(Drawing, UnitsOfTime) {
  const Simulation result = simulate(gpipe(1, 2));
  expect_contains(draw_text(result, {.unit = 0.5}),
                  {"rank 0  0  =  1  = B0  =  =  = B1  =  =  =\n"});
  expect_contains(draw_text(result, {.unit = 2}), {"rank 0  1 B0 B1\n"});
}

// Every tag is closed, in the order of nesting, and nothing but text is outside of tags.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; (at = xml.find('<', at)) != std::string::npos;) {
    const size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    EXPECT_EQ(tag.find('<'), std::string::npos) << tag;
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    const std::string name =
        tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(tag.substr(1), open.back());
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
}

// A first stage of no weight beside one of a second: text stays of a size that can be read.
TEST(Drawing, ATinyStageDoesNotStretchTheText) {
  Costs costs;
  costs.stages = {{.forward = 1e-7, .backward = 2e-7}, {.forward = 1, .backward = 2}};
  const Simulation result = simulate(one_forward_one_backward(2, 8), costs);
  const std::string text = draw_text(result);
  EXPECT_LT(text.size(), 20'000u);
  expect_contains(text, {"rank 0", "rank 1", "B7"});
}

TEST(Drawing, RefusesUnitsThatFitNothing) {
  const Simulation result = simulate(one_forward_one_backward(2, 3));
  const double inf = std::numeric_limits<double>::infinity();
  for (const double unit : {-1.0, std::nan(""), inf})
    expect_contains(error_of<ValueError>([&] { draw_text(result, {.unit = unit}); }),
                    {"draw_text: a unit of", "above 0"});
  expect_contains(error_of<ValueError>([&] { draw_text(result, {.unit = 1e-9}); }),
                  {"12 seconds are more than 100000 columns", "a larger unit"});
}

TEST(Drawing, RefusesAnEmptySimulation) {
  const Simulation empty;
  EXPECT_EQ(empty.ideal_seconds(), 0);
  EXPECT_EQ(empty.largest_peak(), 0);
  expect_contains(error_of<ValueError>([&] { draw_text(empty); }),
                  {"draw_text: the simulation is empty", "Pipeline::measure"});
  expect_contains(error_of<ValueError>([&] { draw_svg(empty); }), {"draw_svg"});
}

TEST(Drawing, SvgIsXmlWithABoxForEachComputation) {
  Schedule schedule = with_updates(zero_bubble(2, 2));
  schedule.name = "a < b & \"c\"";
  Costs costs;
  costs.stages[0].update = 1;
  costs.stages[0].reduce = 0.5;
  const std::string svg = draw_svg(simulate(schedule, costs));
  expect_well_formed(svg);
  expect_contains(
      svg, {"<svg xmlns=\"http://www.w3.org/2000/svg\"", "a &lt; b &amp; &quot;c&quot;", "bubble ",
            "at most 2 bytes", "rank 1", "gradients of weights", "forward", "reduction",
            "<title>I1.0: gradients of inputs, stage 1, 2 to 3 s</title>"});
  size_t boxes = 0;
  for (size_t at = 0; (at = svg.find("</title></rect>", at)) != std::string::npos; ++at) ++boxes;
  EXPECT_EQ(boxes, 2u * (3 * 2 + 2));
  EXPECT_EQ(svg.find("paler"), std::string::npos);
  const std::string v = draw_svg(simulate(zb_v(2, 2)));
  expect_well_formed(v);
  expect_contains(v, {"paler: later stages of a rank"});
  expect_well_formed(draw_svg(simulate(gpipe(8, 300))));
}

TEST(Drawing, SvgFiles) {
  const TempFolder folder;
  const std::string path = folder / "a.svg";
  const Simulation result = simulate(gpipe(2, 2));
  save_svg(result, path);
  EXPECT_EQ(read_file(path), draw_svg(result));
  expect_contains(error_of<IoError>([&] { save_svg(result, "/no/such/folder/a.svg"); }),
                  {"save_svg", "/no/such/folder/a.svg"});
}

}  // namespace
}  // namespace catena::parallel::pipeline
