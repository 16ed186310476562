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

// As a 0-d float64 on the arena's device; frozen parameters do not count.
Array Optimizer::sum_of_squares_at(size_t index) const {
  const ParameterArena& arena = layout_.arenas()[index];
  const Block& gradient = arena.gradient();
  const ArenaSegments& segments = segments_[index];
  if (!segments.defined())
    return sum_of_squares(without_filling(arena, gradient)).astype(Dtype::kFloat64, false);
  const Array sums = segment_squares(segments, {&gradient.memory}, gradient.covers.begin);
  const Array is_frozen = not_equal(segments.factors(Slice(), 2), 0.0);
  return sum(where(is_frozen, zeros_like(sums[0]), sums[0]));
}

// Of parameters, by their master copies where there are some, and of gradients, as far as this
// process updates them.
Array Optimizer::squares_of(size_t index) const {
  const ArenaRange& own = layout_.arenas()[index].covered();
  const Array& parameters = own.master.defined() ? own.master : own.data;
  const int64_t first = layout_.arenas()[index].covers().begin;
  return segment_squares(segments_[index], {&parameters, &own.gradient}, first);
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
  for (const auto& stage : current_stages()) stage->finish_squares(*this, squares);
  return squares;
}

// In one call where all arenas are on one device, as they are in training over ranks.
void Optimizer::sum_over_parts(Arrays& squares) const {
  const auto sum_parts = [&](const Array& sums) {
    bool summed = false;
    for (const auto& stage : current_stages()) summed = stage->sum_parts(sums) || summed;
    CATENA_CHECK(ValueError, summed,
                 "update: the rule needs norms of whole parameters, gradients or steps, but this "
                 "process keeps a part of the states, and no stage sums over the others; override "
                 "UpdateStage::sum_parts");
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
