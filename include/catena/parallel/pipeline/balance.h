// A model cut into stages, as numbers: contiguous parts of its units with the smallest largest
// cost.
#pragma once

#include <string>
#include <vector>

namespace catena::parallel::pipeline {

// What borders cost.
struct BalanceOptions {
  // What it costs a stage to exchange the activations behind unit i (and their gradients) with the
  // stage after it; both stages have the cost. One number for each border: units - 1 of them; none:
  // nothing.
  std::vector<double> border_costs;
  // Where each stage is: a border between two stages of one rank costs nothing. None: all differ.
  std::vector<int> rank_of_stage;
};

// A cut.
struct Balance {
  std::vector<int> first;     // unit of each stage, and the number of units at the end
  std::vector<double> costs;  // of each stage, borders included
  double largest = 0;         // of these: what a steady pipeline takes for a micro-batch
  double ideal = 0;           // the units' sum over the number of stages
  std::string text;           // what was done and what limits it, in a few lines

  // How many there are.
  int stages() const { return static_cast<int>(costs.size()); }
};

// Cuts units of these costs, in their order, into that many stages of at least one unit each, so
// that the largest stage is as small as can be: exactly, by dynamic programming, in O(stages *
// units^2). Among such cuts it takes one whose squared costs have the least sum. Costs are of any
// unit, such as the seconds of a forward and a backward. ValueError for costs that are not finite
// or negative, for fewer units than stages, and options of another size.
Balance balance(const std::vector<double>& costs, int stages, const BalanceOptions& options = {});

}  // namespace catena::parallel::pipeline
