// Norms of gradients, parameters and steps, of which this process may keep a part.
#include <algorithm>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/optimizers/optimizer.h"
#include "optimizers/arena_sums.h"

namespace catena::optimizers {

namespace {

// Without what fills up the last of equal parts, so that the order of a sum over whole gradients
// does not depend on the number of parts.
Array without_filling(const ParameterArena& arena, const Block& block) {
  const int64_t end = arena.slots().back().offset + arena.slots().back().size;
  return block.part(intersection({0, end}, block.covers));
}

}  // namespace

// Of all arenas, as they are laid out now.
void Optimizer::use_counts() {
  counted_.clear();
  for (const ParameterArena& arena : layout_.arenas()) counted_.push_back(counted_of(arena));
}

Optimizer::Counted Optimizer::counted_of(const ParameterArena& arena) const {
  std::vector<double> weights(arena.slots().size(), 1);
  for (const auto& stage : stages_)
    if (const Processes* processes = stage->processes())
      for (size_t s = 0; s < weights.size(); ++s)
        weights[s] *= processes->weight_of(arena.slots()[s].parameter);
  if (std::all_of(weights.begin(), weights.end(), [](double w) { return w == 1; })) return {};
  const DeviceScope scope(arena.device());
  return {array(weights, {int64_t(weights.size())}, arena.device()), make_segments(layout_, arena)};
}

void Optimizer::sum_over_processes(const Arrays& arrays, Processes::Sum of) const {
  for (const auto& stage : current_stages())
    if (Processes* processes = stage->processes()) processes->sum(arrays, of);
}

Array Optimizer::sum_of_squares(size_t index) const {
  const ParameterArena& arena = layout_.arenas()[index];
  const Block& gradient = arena.gradient();
  const auto& [weights, own_segments] = counted_[index];
  const ArenaSegments& segments = segments_[index].defined() ? segments_[index] : own_segments;
  if (!segments.defined())
    return optimizers::sum_of_squares(without_filling(arena, gradient))
        .astype(Dtype::kFloat64, false);
  const Array sums = segment_squares(segments, {&gradient.memory}, gradient.covers.begin);
  const Array is_frozen = not_equal(segments.factors(Slice(), 2), 0.0);
  const Array of_slots = where(is_frozen, zeros_like(sums[0]), sums[0]);
  return sum(weights.defined() ? multiply(of_slots, weights) : of_slots);
}

// Of parameters, by their master copies where there are some, and of gradients, as far as this
// process updates them.
Array Optimizer::squares_of(size_t index) const {
  const ArenaRange& own = layout_.arenas()[index].covered();
  const int64_t first = layout_.arenas()[index].covers().begin;
  return segment_squares(segments_[index], {&own.updated(), &own.gradient}, first);
}

// The same of the values that the rule starts from and of its steps.
Array Optimizer::step_squares_of(size_t index, const UpdateContext& update) {
  const ParameterArena& arena = layout_.arenas()[index];
  RuleCall rule_call;
  fill(rule_call, index, arena.covered(), arena.covers().begin, update);
  const RuleSegments& segments = rule_call.segments;
  const auto pairs = [&](int64_t count) {
    return Array::uninitialized({2, count}, Dtype::kFloat64, arena.device());
  };
  const Array partial = pairs(segments.piece_count);
  Array sums = pairs(segments.count);
  sum_step_squares(rule_call.call, partial, sums);
  return sums;
}

// Of whole parameters, for each arena.
Arrays Optimizer::squares_of_all(const UpdateContext& update) {
  Arrays squares;
  for (size_t i = 0; i < layout_.arenas().size(); ++i) {
    const DeviceScope scope(layout_.arenas()[i].device());
    squares.push_back(needs_norms_of_steps() ? step_squares_of(i, update) : squares_of(i));
  }
  if (is_sharded()) sum_over_parts(squares);
  for (size_t i = 0; i < squares.size(); ++i)
    if (const Array& weights = counted_[i].weights; weights.defined())
      multiply(squares[i], weights, squares[i]);
  sum_over_processes(squares, Processes::Sum::kSquares);
  return squares;
}

// In one call where all arenas are on one device, as they are in training over ranks.
void Optimizer::sum_over_parts(Arrays& squares) const {
  const auto sum_parts = [&](const Array& sums) {
    sum_over_processes({sums}, Processes::Sum::kParts);
  };
  const Device device = squares[0].device();
  const bool is_one_device = std::all_of(squares.begin(), squares.end(),
                                         [&](const Array& one) { return one.device() == device; });
  if (!is_one_device || squares.size() == 1) {
    for (const Array& one : squares) sum_parts(one);
    return;
  }
  const DeviceScope scope(device);
  Arrays flat;
  for (const Array& one : squares) flat.push_back(one.reshape({-1}));
  const Array all = concatenate(flat);
  sum_parts(all);
  int64_t begin = 0;
  for (Array& one : squares) {
    const int64_t end = begin + one.size();
    one = all(Slice(begin, end)).reshape(one.shape());
    begin = end;
  }
}

}  // namespace catena::optimizers
