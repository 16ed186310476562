#include "core/memory_picture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/memory_shares.h"
#include "core/readable_numbers.h"
#include "core/svg_text.h"

namespace catena {
namespace {

constexpr double kLeft = 84, kRight = 24, kTop = 64, kPlot = 260, kRow = 19;
constexpr double kBucket = 1.5;     // pixels of a bucket of time
constexpr double kCharacter = 6.6;  // pixels of a character of a name
constexpr double kHeadroom = 1.12;  // of the axis above the peak, for its label
constexpr const char* kOthers = "#9aa0a6";
// Apart from each other on white and on black.
constexpr std::array kColors = {"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948",
                                "#b07aa1", "#9c755f", "#ff9da7", "#8cd17d", "#d37295", "#499894"};

// Whoever opens the picture may prefer dark pages; its own paper keeps it readable on any.
constexpr const char* kStyle =
    "<style>\n"
    "text{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#1f2328}\n"
    ".title{font-size:15px;font-weight:600}.strong{font-weight:600}.faint{fill:#59636e}\n"
    ".paper{fill:#fff}.grid{stroke:#d1d9e0}.mark{stroke:#1f2328;fill:none}\n"
    "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.faint{fill:#9198a1}.paper{fill:#0d1117}"
    ".grid{stroke:#3d444d}.mark{stroke:#f0f6fc}}\n"
    "</style>\n";

std::string milliseconds(double ns) {
  const double ms = ns / 1e6;
  return fixed_digits(ms, ms < 10 ? 3 : 1) + " ms";
}

std::string exact_bytes(int64_t bytes) { return grouped(bytes) + " bytes"; }

// 1, 2 or 5 times a power of ten, so that about so many fit.
double step_for(double span, int about) {
  const double least = span / about, power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1., 2., 5.})
    if (factor * power >= least) return factor * power;
  return 10 * power;
}

// Digits behind the point that multiples of a step need.
int digits_for(double step) { return std::max(0, int(-std::floor(std::log10(step) + 1e-9))); }

struct TextStyle {
  const char* anchor = "start";
  const char* style = "";
};

// The panel of one device.
class Panel {
 public:
  Panel(Device device, const MemoryShares& shares, int64_t end_ns, double width)
      : device_(device), shares_(shares), end_ns_(double(end_ns)), width_(width) {}

  // Below `top`; returns where it ends.
  double draw(double top, int64_t bucket_ns, std::string* out) {
    top_ = top + kTop;
    const bool empty = shares_.peak == 0;
    text(kLeft, top + 28, "Memory of " + device_.name(), {.style = "title"});
    if (empty) {
      text(kLeft, top + 48, "Nothing was allocated while the profile lived.", {.style = "faint"});
    } else {
      text(kLeft, top + 48, heading(bucket_ns), {.style = "faint"});
      draw_bytes_axis();
      draw_areas();
      draw_time_axis();
      draw_peak();
      draw_table();
    }
    *out += out_;
    return empty ? top + kTop : base() + 62 + kRow * (double(shares_.shares.size()) + 2);
  }

 private:
  double base() const { return top_ + kPlot; }
  double x_of(int64_t ns) const { return kLeft + (width_ - kLeft - kRight) * double(ns) / end_ns_; }
  double y_of(double bytes) const {
    return base() - kPlot * bytes / (kHeadroom * double(shares_.peak));
  }

  void text(double x, double y, const std::string& escaped, const TextStyle& s = {}) {
    out_ += "<text x=\"" + svg_number(x) + "\" y=\"" + svg_number(y) + '"';
    if (std::string_view(s.anchor) != "start")
      out_ += std::string(" text-anchor=\"") + s.anchor + '"';
    if (*s.style) out_ += std::string(" class=\"") + s.style + '"';
    out_ += '>' + escaped + "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, const std::string& attributes) {
    out_ += "<path d=\"M" + svg_number(x1) + ' ' + svg_number(y1) + 'L' + svg_number(x2) + ' ' +
            svg_number(y2) + "\" " + attributes + "/>\n";
  }

  std::string heading(int64_t bucket_ns) const {
    std::string what = "Bytes by the calls that allocated them.";
    if (bucket_ns > 0)
      what +=
          " Thinned out: every " + milliseconds(double(bucket_ns)) + " show their highest moment.";
    return what;
  }

  void draw_bytes_axis() {
    const ByteUnit unit = byte_unit(double(shares_.peak));
    const double most = kHeadroom * double(shares_.peak) / unit.bytes;
    const double step = std::max(step_for(most, 8), unit.bytes == 1 ? 1. : 0.);
    for (int i = 0; i * step <= most; ++i) {
      const double y = y_of(i * step * unit.bytes);
      line(kLeft, y, width_ - kRight, y, "class=\"grid\"");
      text(kLeft - 8, y + 4, fixed_digits(i * step, digits_for(step)) + ' ' + unit.name,
           {.anchor = "end", .style = "faint"});
    }
  }

  void draw_time_axis() {
    const double end_ms = end_ns_ / 1e6, step = step_for(end_ms, 8);
    for (int i = 0; i * step <= end_ms; ++i) {
      const double x = x_of(int64_t(i * step * 1e6));
      line(x, base(), x, base() + 5, "class=\"mark\"");
      text(x, base() + 19, fixed_digits(i * step, digits_for(step)) + (i == 0 ? " ms" : ""),
           {.anchor = "middle", .style = "faint"});
    }
    line(kLeft, base(), width_ - kRight, base(), "class=\"mark\"");
  }

  std::string color(size_t share) const {
    return shares_.shares[share].others > 0 ? kOthers : kColors[share % kColors.size()];
  }
  std::string name(size_t share) const {
    const size_t others = shares_.shares[share].others;
    if (others == 0) return shares_.shares[share].name;
    return "others (" + std::to_string(others) + (others == 1 ? " caller)" : " callers)");
  }
  std::string tooltip(size_t share) const {
    return "<title>" + svg_escaped(name(share)) + ": " +
           exact_bytes(shares_.shares[share].at_peak) + " at the peak</title>";
  }

  // From the highest down, each from the base up: the lower ones cover it.
  void draw_areas() {
    for (size_t level = shares_.stacked.size(); level-- > 0;) {
      const size_t share = shares_.stacked[level];
      out_ += "<path fill=\"" + color(share) + "\" d=\"" + outline(level) + "\">" + tooltip(share) +
              "</path>\n";
    }
  }
  // Of the sum of the shares up to this level.
  std::string outline(size_t level) const {
    std::string y = svg_number(base()), path = 'M' + svg_number(kLeft) + ' ' + y;
    for (const MemoryShares::Moment& moment : shares_.moments) {
      int64_t sum = 0;
      for (size_t i = 0; i <= level; ++i) sum += moment.held[shares_.stacked[i]];
      std::string next = svg_number(y_of(double(sum)));
      if (next == y) continue;
      y = std::move(next);
      path += 'H' + svg_number(x_of(moment.ns)) + 'V' + y;
    }
    return path + 'H' + svg_number(x_of(int64_t(end_ns_))) + 'V' + svg_number(base()) + 'Z';
  }

  void draw_peak() {
    const double x = x_of(shares_.peak_ns), y = y_of(double(shares_.peak));
    line(x, y, x, base(), "class=\"mark\" stroke-dasharray=\"3 3\"");
    out_ += "<circle class=\"mark\" cx=\"" + svg_number(x) + "\" cy=\"" + svg_number(y) +
            "\" r=\"3.5\"/>\n";
    const bool left = x > (kLeft + width_) / 2;
    text(left ? x + 4 : x - 4, y - 9,
         "peak " + bytes_text(shares_.peak) + " at " + milliseconds(double(shares_.peak_ns)),
         {.anchor = left ? "end" : "start", .style = "strong"});
  }

  void draw_table() {
    double y = base() + 52;
    row(y, "at the peak", "share", "held by", "faint");
    for (size_t i = 0; i < shares_.shares.size(); ++i) {
      y += kRow;
      out_ += "<g>" + tooltip(i) + "<rect x=\"" + svg_number(kLeft) + "\" y=\"" +
              svg_number(y - 10) + "\" width=\"12\" height=\"12\" rx=\"2\" fill=\"" + color(i) +
              "\"/>\n";
      const int64_t bytes = shares_.shares[i].at_peak;
      const double percent = 100 * double(bytes) / double(shares_.peak);
      const auto fits = size_t((width_ - kRight - kLeft - 180) / kCharacter);
      row(y, bytes_text(bytes), fixed_digits(percent, 1) + " %", svg_shortened(name(i), fits), "");
      out_ += "</g>\n";
    }
    out_ += "<g><title>" + exact_bytes(shares_.peak) + " at the peak</title>\n";
    row(y + kRow, bytes_text(shares_.peak), "100 %", "in all", "strong");
    out_ += "</g>\n";
  }
  void row(double y, const std::string& bytes, const std::string& share, const std::string& name,
           const char* style) {
    text(kLeft + 100, y, bytes, {.anchor = "end", .style = style});
    text(kLeft + 164, y, share, {.anchor = "end", .style = style});
    text(kLeft + 180, y, name, {.style = style});
  }

  Device device_;
  const MemoryShares& shares_;
  double end_ns_, width_, top_ = 0;
  std::string out_;
};

}  // namespace

std::string draw_memory(const std::vector<std::string>& paths,
                        const std::vector<DeviceMemory>& devices, int64_t end_ns,
                        const MemoryPictureOptions& options) {
  const double width = options.width;
  const auto bucket = int64_t(double(end_ns) * kBucket / (width - kLeft - kRight));
  std::string panels;
  double height = 8;
  for (const DeviceMemory& memory : devices) {
    const MemoryShares shares =
        shares_of(memory.timeline, paths, options.levels, options.callers, bucket);
    const int64_t thinned = memory.timeline.bucket_width();
    height = Panel(memory.device, shares, end_ns, width)
                 .draw(height, thinned > bucket ? thinned : 0, &panels);
  }
  const std::string size = svg_number(width) + ' ' + svg_number(height + 8);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size + "\" width=\"" +
         svg_number(width) + "\" height=\"" + svg_number(height + 8) + "\" role=\"img\">\n" +
         kStyle + "<rect class=\"paper\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n" + panels +
         "</svg>\n";
}

}  // namespace catena
