// maxout: the axis is split in two, and the largest along the second one is taken.
#include "catena/functions/activation/maxout.h"

#include "catena/functions/array/reshape.h"
#include "catena/functions/math/minmax.h"
#include "functions/common/axes.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

void check_size(const char* who, int64_t pool_size) {
  CATENA_CHECK(ValueError, pool_size >= 1, who, ": expected a pool_size of at least 1, got ",
               pool_size);
}

void check_pools(const FunctionCall& call, int axis, int64_t pool_size) {
  const TypeOf x(call[0].data(), "x");
  Checks(call.named(), x)
      .advised([&] {
        return message("The extent of axis ", axis, " is expected as a multiple of pool_size, ",
                       pool_size, ".");
      })
      .require(shown(x.shape(axis).get() % pool_size, "x.shape[axis] % pool_size") == 0);
}

// Those of Linear, given by pool or in one list.
LinearOptions flat_options(const LinearOptions& options, int64_t in, int64_t out, int64_t pool) {
  check_size("Maxout", pool);
  LinearOptions flat = options;
  if (const Array* W = options.initialW.array(); W && W->shape() == Shape{out, pool, in})
    flat.initialW = W->reshape({out * pool, in});
  if (const Array* b = options.initial_bias.array(); b && b->shape() == Shape{out, pool})
    flat.initial_bias = b->reshape({out * pool});
  return flat;
}

}  // namespace

Variable maxout(const VariableOperand& operand, int64_t pool_size, Axis axis) {
  check_size("Maxout", pool_size);
  FunctionCall call("Maxout", Autocast::kNone, operand);
  const Variable& x = call[0];
  check_axes(call, x.data(), {axis});
  const int a = normalize_axis(call.name(), axis, x.ndim());
  check_pools(call, a, pool_size);
  Shape pools = x.shape();
  pools[size_t(a)] /= pool_size;
  pools.insert(pools.begin() + a + 1, pool_size);
  return max(reshape(x, pools), a + 1);
}

Maxout::Maxout(int64_t in_size, int64_t out_size, int64_t pool_size, const LinearOptions& options)
    : linear(in_size, out_size * pool_size, flat_options(options, in_size, out_size, pool_size)),
      pool_size_(pool_size) {}

Variable Maxout::operator()(const VariableOperand& x) const {
  return maxout(linear(x), pool_size_, -1);
}

}  // namespace catena::functions
