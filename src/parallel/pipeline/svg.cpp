// Drawings of simulated schedules as SVG.
#include <algorithm>
#include <cmath>
#include <fstream>

#include "catena/core/error.h"
#include "catena/parallel/pipeline/drawing.h"
#include "picture.h"

namespace catena::parallel::pipeline {
namespace {

constexpr double kLeft = 60, kTop = 40, kRow = 26, kGap = 4, kLeast = 640, kMost = 4000, kUnit = 22;

struct Look {
  Kind kind;
  const char* name;
  const char* colour;
};
constexpr Look kLooks[] = {{Kind::kForward, "forward", "#7fb2e5"},
                           {Kind::kBackward, "backward", "#7cc28a"},
                           {Kind::kBackwardInputs, "gradients of inputs", "#57b8a6"},
                           {Kind::kBackwardWeights, "gradients of weights", "#c3d66f"},
                           {Kind::kReduce, "reduction", "#d9a5d6"},
                           {Kind::kUpdate, "update", "#e8a15b"}};

const Look& look_of(Kind kind) {
  return *std::find_if(std::begin(kLooks), std::end(kLooks),
                       [&](const Look& look) { return look.kind == kind; });
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else if (static_cast<unsigned char>(c) < ' ')
      result += ' ';
    else
      result += c;
  }
  return result;
}

std::string pixels(double value) { return short_number(std::round(value * 10) / 10); }

class Svg {
 public:
  explicit Svg(const Simulation& simulation)
      : s_(simulation), places_(place_on_rank(simulation)), scale_(scale_of(simulation)) {}

  std::string draw() {
    const double width = std::max(kLeast, kLeft + s_.seconds * scale_ + 20);
    const double bottom = kTop + s_.ranks() * kRow, height = bottom + 70;
    text_ =
        message("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", pixels(width), "\" height=\"",
                pixels(height), "\" viewBox=\"0 0 ", pixels(width), " ", pixels(height),
                "\" font-family=\"sans-serif\" font-size=\"11\">\n<title>", escaped(title_of(s_)),
                "</title>\n<rect width=\"100%\" height=\"100%\" "
                "fill=\"white\"/>\n");
    write(kLeft, 22, title_of(s_), "start");
    for (int rank = 0; rank < s_.ranks(); ++rank) add_row(rank);
    for (const Span& span : s_.timeline)
      if (!is_message(span.action.kind)) add_box(span);
    add_axis(bottom);
    add_legend(bottom + 44);
    return text_ + "</svg>\n";
  }

 private:
  // Pixels of a second.
  static double scale_of(const Simulation& s) {
    double shortest = s.seconds;
    for (const Span& span : s.timeline)
      if (span.action.kind < Kind::kSendOutput && span.end > span.begin)
        shortest = std::min(shortest, span.end - span.begin);
    if (s.seconds <= 0) return 1;
    return std::clamp(kUnit / shortest, 500 / s.seconds, kMost / s.seconds);
  }
  double x_of(double time) const { return kLeft + time * scale_; }

  void write(double x, double y, const std::string& what, const char* anchor) {
    text_ += message("<text x=\"", pixels(x), "\" y=\"", pixels(y), "\" text-anchor=\"", anchor,
                     "\">", escaped(what), "</text>\n");
  }
  void rectangle(double x, double y, double width, double height, const char* colour,
                 double opacity, const std::string& hint) {
    text_ += message("<rect x=\"", pixels(x), "\" y=\"", pixels(y), "\" width=\"", pixels(width),
                     "\" height=\"", pixels(height), "\" fill=\"", colour, "\" fill-opacity=\"",
                     pixels(opacity), "\" stroke=\"white\" stroke-width=\"0.5\"");
    text_ += hint.empty() ? "/>\n" : "><title>" + escaped(hint) + "</title></rect>\n";
  }
  void add_row(int rank) {
    const double y = kTop + rank * kRow;
    write(kLeft - 6, y + 15, message("rank ", rank), "end");
    rectangle(kLeft, y, s_.seconds * scale_, kRow - kGap, "#eeeeee", 1, "");
  }
  void add_box(const Span& span) {
    const Action& action = span.action;
    const Look& look = look_of(action.kind);
    const double x = x_of(span.begin), width = (span.end - span.begin) * scale_;
    const double y = kTop + span.rank * kRow;
    const bool beside = action.kind == Kind::kReduce;  // may run under computations
    const double height = beside ? 6 : kRow - kGap;
    const double shade = std::max(0.4, 1 - 0.4 * places_[size_t(action.stage)]);
    rectangle(x, beside ? y + kRow - kGap - height : y, width, height, look.colour, shade,
              message(to_string(action), ": ", look.name, ", stage ", action.stage, ", ",
                      short_number(span.begin), " to ", short_number(span.end), " s"));
    if (action.kind >= Kind::kSendOutput) return;
    const std::string label = std::to_string(action.micro_batch);
    if (width >= 7.0 * double(label.size()) + 2) write(x + width / 2, y + 15, label, "middle");
  }
  void add_axis(double bottom) {
    constexpr int kMarks = 5;
    for (int i = 0; i <= kMarks; ++i) {
      const double time = s_.seconds * i / kMarks;
      write(x_of(time), bottom + 14, short_number(time) + (i == kMarks ? " s" : ""), "middle");
    }
  }
  void add_legend(double y) {
    double x = kLeft;
    for (const Look& look : kLooks) {
      const auto is_kind = [&](const Span& span) { return span.action.kind == look.kind; };
      if (std::none_of(s_.timeline.begin(), s_.timeline.end(), is_kind)) continue;
      rectangle(x, y - 10, 12, 12, look.colour, 1, "");
      write(x + 16, y, look.name, "start");
      x += 34 + 6.2 * double(std::string(look.name).size());
    }
    if (has_several_stages(s_)) write(x, y, "paler: later stages of a rank", "start");
  }

  const Simulation& s_;
  const std::vector<int> places_;
  const double scale_;
  std::string text_;
};

}  // namespace

std::string draw_svg(const Simulation& simulation) {
  check_filled("draw_svg", simulation);
  return Svg(simulation).draw();
}

void save_svg(const Simulation& simulation, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << draw_svg(simulation) << std::flush;
  CATENA_CHECK(IoError, file.good(), "save_svg: cannot write '", path, "'");
}

}  // namespace catena::parallel::pipeline
