// repeat and tile: broadcasts along new axes, which join those beside them.
#include "catena/functions/array/repeat.h"

#include "catena/autograd/function_call.h"
#include "catena/functions/array/broadcast.h"
#include "catena/functions/array/reshape.h"

namespace catena::functions {

Variable repeat(const VariableOperand& operand, int64_t count, OptionalAxis axis) {
  FunctionCall call("Repeat", Autocast::kNone, operand);
  CATENA_CHECK(ValueError, count >= 0, "Repeat: expected a count of at least 0, got ", count);
  const Variable& x = call[0];
  if (!axis) return repeat(reshape(x, {x.size()}), count, 0);
  const int a = normalize_axis(call.name(), *axis, x.ndim());
  Shape spread = x.shape(), result = x.shape();
  spread.insert(spread.begin() + a + 1, count);
  result[size_t(a)] *= count;
  return reshape(broadcast_to(expand_dims(x, a + 1), spread), result);
}

Variable tile(const VariableOperand& operand, const Shape& repetitions) {
  FunctionCall call("Tile", Autocast::kNone, operand);
  Shape from = call[0].shape(), times = repetitions;
  while (from.ndim() < times.ndim()) from.insert(from.begin(), 1);
  while (times.ndim() < from.ndim()) times.insert(times.begin(), 1);
  Shape split, spread, result;
  for (size_t i = 0; i < from.size(); ++i) {
    CATENA_CHECK(ValueError, times[i] >= 0, "Tile: negative repetition in ", repetitions);
    split.insert(split.end(), {1, from[i]});
    spread.insert(spread.end(), {times[i], from[i]});
    result.push_back(times[i] * from[i]);
  }
  return reshape(broadcast_to(reshape(call[0], split), spread), result);
}

}  // namespace catena::functions
