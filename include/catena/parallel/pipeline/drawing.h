// Pictures of simulated schedules: as text and as SVG.
#pragma once

#include <string>

#include "catena/parallel/pipeline/simulate.h"

namespace catena::parallel::pipeline {

// How text is cut into columns and lines.
struct DrawingOptions {
  // Seconds of a column of text. 0: those of the shortest computation, but at least a thousandth of
  // the whole, so that one tiny stage does not stretch the rows; in such a drawing the shortest
  // computations may not show.
  double unit = 0;
  int width = 100;  // characters of a line; what is longer goes on below
};

// A row for each rank, a column for each unit of time. A forward is the number of its micro-batch;
// B, I and W are in front of the numbers of backwards and their halves, R and U are reductions and
// updates, '=' goes on with what is before it, '.' is idle time. On ranks with several stages a
// letter says which: a is the rank's first one. Columns show what is computed in their middles.
// ValueError for a width in which no column has room, a unit that is negative, not finite or so
// small that there were more than 100,000 columns, and a Simulation that is empty.
std::string draw_text(const Simulation& simulation, const DrawingOptions& options = {});

// A drawing with a box for each computation, whose colour is its kind, with title, time, legend,
// bubble and peak memory. Later stages of a rank are paler. ValueError for an empty Simulation.
std::string draw_svg(const Simulation& simulation);
// Into a file. IoError if that fails.
void save_svg(const Simulation& simulation, const std::string& path);

}  // namespace catena::parallel::pipeline
