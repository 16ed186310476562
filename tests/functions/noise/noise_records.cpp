// Records of random functions. Their call sets the seed, so that it is a function.
#include "catena/functions/noise.h"
#include "functions/function_record.h"

namespace catena {
namespace {

Variable dropped(const Variable& x, double ratio) {
  random::seed(5);
  return F::dropout(x, ratio);
}

FunctionRecord dropout_record() {
  FunctionRecord r;
  r.function = "dropout";
  r.follows_memory_order = true;
  r.ranges = {{1, 2}};
  r.shapes = {{{5, 4}}, {{2, 3, 2}}, {{0, 3}}, {{}}};
  r.call = unary([](const Variable& x) { return dropped(x, 0.5); });
  r.forward_launches = r.backward_launches = 1;
  r.errors = {
      integers_refused("Dropout", {3}),
      error<ValueError>([](const Draw& draw) { F::dropout(draw({3}), 1.0); },
                        "Dropout: expected a ratio of [0, 1), got 1"),
      error<ValueError>([](const Draw& draw) { F::dropout(draw({3}), -0.1); },
                        "Dropout: expected a ratio of [0, 1), got -0.1"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(noise) { return {dropout_record()}; }

}  // namespace catena
