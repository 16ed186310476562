// Records of negative_sampling with given rows.

#include "catena/functions/loss/negative_sampling.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord given_rows(Dtype rows) {
  FunctionRecord r;
  r.function = "negative_sampling";
  r.variant = message(rows, " rows");
  r.ranges = {{}, {0, 4, rows}, {}};
  r.shapes = {{{3, 5}, {3, 4}, {4, 5}}, {{1, 1}, {1, 1}, {4, 1}}, {{0, 5}, {0, 3}, {4, 5}},
              {{2, 0}, {2, 3}, {4, 0}}, {{2, 3}, {2, 0}, {4, 3}}, {{5, 40}, {5, 6}, {4, 40}},
              {{4, 3}, {4, 2}, {4, 3}}};
  r.call = [](const Variables& v) { return Variables{F::negative_sampling(v[0], v[1], v[2])}; };
  r.forward_launches = rows == Dtype::kInt32 ? 1 : 2;
  r.backward_launches = 1;
  return r;
}

FunctionRecord errors() {
  FunctionRecord r = given_rows(Dtype::kInt32);
  r.variant = "errors";
  r.shapes = {{{3, 5}, {3, 4}, {4, 5}}};
  const std::string name = "NegativeSampling";
  r.errors = {
      type_error(name, {{2, 3}, {{2, 2}, Dtype::kFloat64}, {4, 3}},
                 "Expect: samples.dtype == int32\nActual: float64 != int32\nInputs: x float64 (2, "
                 "3), samples float64 (2, 2), W float64 (4, 3)"),
      type_error(name, {{2, 3}, {{2}, Dtype::kInt32}, {4, 3}},
                 "Expect: samples.ndim == 2\nActual: 1 != 2\nInputs: x float64 (2, 3), samples "
                 "int32 (2,), W float64 (4, 3)"),
      type_error(name, {{2, 3}, {{1, 2}, Dtype::kInt32}, {4, 3}},
                 "Expect: x.shape[0] == samples.shape[0]\nActual: 2 != 1\nInputs: x float64 (2, "
                 "3), samples int32 (1, 2), W float64 (4, 3)"),
      type_error(name, {{2, 3}, {{2, 2}, Dtype::kInt32}, {4, 5}},
                 "Expect: x.shape[1] == W.shape[1]\nActual: 3 != 5\nInputs: x float64 (2, 3), "
                 "samples int32 (2, 2), W float64 (4, 5)"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(negative_sampling) {
  return {given_rows(Dtype::kInt32), given_rows(Dtype::kInt64), errors()};
}

}  // namespace catena
