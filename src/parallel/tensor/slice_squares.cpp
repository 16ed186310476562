#include "slice_squares.h"

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/comm/internals.h"

namespace catena::parallel {
namespace {

using optimizers::ParameterArena;

bool are_of(const Arrays& counts, const std::vector<ParameterArena>& arenas) {
  if (counts.size() != arenas.size()) return false;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i].device() != arenas[i].device() ||
        counts[i].size() != int64_t(arenas[i].slots().size()))
      return false;
  return true;
}

}  // namespace

SliceSquares::SliceSquares(Communicator& tensor, const Parameters& sliced) : tensor_(tensor) {
  for (const Parameter& parameter : sliced) sliced_.insert(parameter.state());
}

const Arrays& SliceSquares::counts_for(const Optimizer& optimizer) {
  const auto& arenas = optimizer.layout().arenas();
  Arrays& counts = counts_[&optimizer];
  if (are_of(counts, arenas)) return counts;
  counts.clear();
  for (const ParameterArena& arena : arenas) {
    std::vector<double> of_slots;
    for (const ParameterArena::Slot& slot : arena.slots())
      of_slots.push_back(tensor_.rank() == 0 || sliced_.contains(slot.parameter.state()) ? 1 : 0);
    counts.push_back(array(of_slots, {int64_t(of_slots.size())}, arena.device()));
  }
  return counts;
}

void SliceSquares::sum(const Optimizer& optimizer, const Arrays& squares) {
  if (tensor_.size() == 1) return;
  const Arrays& counts = counts_for(optimizer);
  for (size_t i = 0; i < squares.size(); ++i) multiply(squares[i], counts[i], squares[i]);
  const comm::PurposeScope purpose(&tensor_, "norms of slices");
  tensor_.group([&] {
    for (const Array& one : squares) tensor_.all_reduce(one, comm::Reduction::kSum, one);
  });
}

}  // namespace catena::parallel
