#include "catena/parallel/pipeline/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "catena/core/error.h"
#include "picture.h"

namespace catena::parallel::pipeline {

std::vector<int> place_on_rank(const Simulation& simulation) {
  std::vector<int> stages(size_t(simulation.ranks())), result;
  for (const int rank : simulation.rank_of_stage) result.push_back(stages[size_t(rank)]++);
  return result;
}

bool has_several_stages(const Simulation& simulation) {
  const std::vector<int> places = place_on_rank(simulation);
  return *std::max_element(places.begin(), places.end()) > 0;
}

void check_filled(const char* who, const Simulation& simulation) {
  CATENA_CHECK(ValueError, simulation.ranks() > 0, who,
               ": the simulation is empty; take one from simulate or Pipeline::measure");
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  std::string result = text;
  std::replace(result.begin(), result.end(), ',', '.');  // of a program's locale
  return result;
}

std::string title_of(const Simulation& s) {
  const auto count = [](size_t n, const char* one, const char* many) {
    return message(n, " ", n == 1 ? one : many);
  };
  return message(s.name, ": ", count(s.rank_of_stage.size(), "stage", "stages"), " on ",
                 count(size_t(s.ranks()), "rank", "ranks"), ", ",
                 count(size_t(s.micro_batches), "micro-batch", "micro-batches"), ", ",
                 short_number(s.seconds), " s, bubble ", short_number(100 * s.bubble()), " %",
                 s.largest_peak() > 0
                     ? message(", at most ", short_number(s.largest_peak()), " bytes on a rank")
                     : "");
}

namespace {

bool is_drawn(const Span& span) { return !is_message(span.action.kind); }

constexpr int kColumns = 1000, kMostColumns = 100'000;

// Seconds of a column.
double unit_of(const Simulation& simulation, const DrawingOptions& options) {
  CATENA_CHECK(ValueError, std::isfinite(options.unit) && options.unit >= 0,
               "draw_text: a unit of ", options.unit,
               " seconds a column; expected a number above 0, or 0 for one that fits");
  CATENA_CHECK(ValueError, options.unit == 0 || simulation.seconds / options.unit <= kMostColumns,
               "draw_text: with a unit of ", options.unit, " seconds, ", simulation.seconds,
               " seconds are more than ", kMostColumns, " columns; give a larger unit");
  if (options.unit > 0) return options.unit;
  double unit = std::numeric_limits<double>::infinity();
  for (const Span& span : simulation.timeline)
    if (span.action.kind < Kind::kSendOutput && span.end > span.begin)
      unit = std::min(unit, span.end - span.begin);
  return std::isfinite(unit) ? std::max(unit, simulation.seconds / kColumns) : 1;
}

std::string label_of(const Span& span, const std::vector<int>& places, bool several) {
  const Action& action = span.action;
  std::string label = action.kind == Kind::kForward ? "" : to_string(action).substr(0, 1);
  if (action.kind < Kind::kSendOutput) label += std::to_string(action.micro_batch);
  if (several) label += static_cast<char>('a' + places[size_t(action.stage)] % 26);
  return label;
}

using Row = std::vector<std::string>;

void fill(Row& row, const Span& span, const std::string& label, double unit) {
  const auto column = [&](double time) {  // the first whose middle is not before it
    return static_cast<size_t>(std::max(0.0, std::ceil(time / unit - 0.5 - 1e-9)));
  };
  const size_t begin = column(span.begin), end = std::min(column(span.end), row.size());
  for (size_t i = begin; i < end; ++i) row[i] = i == begin ? label : "=";
}

// Of equal length, with room for the longest label and a blank.
std::vector<Row> rows_of(const Simulation& simulation, double unit) {
  const auto columns =
      static_cast<size_t>(std::max(1.0, std::ceil(simulation.seconds / unit - 1e-9)));
  const std::vector<int> places = place_on_rank(simulation);
  const bool several = has_several_stages(simulation);
  std::vector<Row> rows(size_t(simulation.ranks()), Row(columns, "."));
  for (const Span& span : simulation.timeline)
    if (is_drawn(span)) fill(rows[size_t(span.rank)], span, label_of(span, places, several), unit);
  return rows;
}

std::string padded(const std::string& text, size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

void end_line(std::string& text) {
  text.erase(text.find_last_not_of(' ') + 1);
  text += '\n';
}

}  // namespace

std::string draw_text(const Simulation& simulation, const DrawingOptions& options) {
  check_filled("draw_text", simulation);
  const double unit = unit_of(simulation, options);
  const std::vector<Row> rows = rows_of(simulation, unit);
  size_t cell = 0;
  for (const Row& row : rows)
    for (const std::string& label : row) cell = std::max(cell, label.size() + 1);
  const size_t head = 5 + std::to_string(simulation.ranks() - 1).size();
  CATENA_CHECK(ValueError, options.width >= 0 && size_t(options.width) >= head + cell,
               "draw_text: a width of ", options.width,
               " characters; this schedule needs at least ", head + cell);
  const size_t columns = (size_t(options.width) - head) / cell, total = rows[0].size();
  std::string text = title_of(simulation) + '\n';
  for (size_t first = 0; first < total; first += columns) {
    const size_t end = std::min(first + columns, total);
    if (total > columns) {
      text += "from " + short_number(double(first) * unit) + " s";
      end_line(text);
    }
    for (size_t rank = 0; rank < rows.size(); ++rank) {
      text += "rank " + padded(std::to_string(rank), head - 5);
      for (size_t i = first; i < end; ++i) text += padded(rows[rank][i], cell);
      end_line(text);
    }
  }
  return text;
}

}  // namespace catena::parallel::pipeline
