// partition: where to cut a model into stages of a pipeline.
#pragma once

#include <string>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/parallel/pipeline/sequence.h"

namespace catena::parallel::pipeline {

// The stages of a model: stage s has units first[s] to first[s + 1] - 1, the last one all that are
// left. Cut{{0, 4, 8}} by hand, or by partition.
struct Cut {
  std::vector<int> first;
  // What partition did: a line for each stage with its units and its share of the costs.
  std::string text = {};

  // The number of stages; one past the last unit of a stage, of a model with so many units.
  int stages() const { return static_cast<int>(first.size()); }
  int end(int stage, size_t units) const;
  // ValueError unless every stage has a unit of a model with so many units.
  void check(size_t units) const;
};

// Consecutive stages whose largest cost is as small as possible; costs[u] is that of unit u, in any
// unit. ValueError unless there is one for each unit, none is negative, and 1 <= stages <= units.
Cut partition(const Sequence& model, int stages, const std::vector<double>& costs);
// By the number of elements in the units' parameters: for layers of one kind.
Cut partition(const Sequence& model, int stages);
// By times measured on `sample`, inputs of the model on its device: see measure_costs. Ranks may
// measure differently; with a communicator all use the times of rank 0, which is collective.
Cut partition(Sequence& model, int stages, const Arrays& sample, Communicator* comm = nullptr);
inline Cut partition(Sequence& model, int stages, const Array& sample,
                     Communicator* comm = nullptr) {
  return partition(model, stages, Arrays{sample}, comm);
}

// Seconds of forward and backward of each unit, the median of `rounds`; waits for the device. Runs
// the units on their inputs as they follow from `sample`, with gradients of ones. Neither
// gradients, running averages nor random numbers move; parameters must not have gradients yet that
// are wanted: they are zero afterwards.
std::vector<double> measure_costs(Sequence& model, const Arrays& sample, int rounds = 5);

}  // namespace catena::parallel::pipeline
