// Records of lstm.
#include "catena/functions/activation/lstm.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord lstm_record() {
  FunctionRecord r;
  r.function = "lstm";
  r.ranges = {{-2, 2}, {-2, 2}};
  r.shapes = {
      {{3, 2}, {3, 8}}, {{1, 1}, {1, 4}},        {{2, 17}, {2, 68}},          {{0, 2}, {0, 8}},
      {{2, 0}, {2, 0}}, {{2, 3, 2}, {2, 12, 2}}, {{2, 2, 2, 3}, {2, 8, 2, 3}}};
  r.call = [](const Variables& v) {
    const auto [c, h] = F::lstm(v[0], v[1]);
    return Variables{c, h};
  };
  r.forward_launches = r.backward_launches = 1;
  return r;
}

FunctionRecord lstm_errors() {
  FunctionRecord r = lstm_record();
  r.variant = "errors";
  r.shapes = {{{3, 2}, {3, 8}}};
  const std::string expected =
      "\nExpected are c_prev (n, cells, ...) and x (n, 4 * cells, ...), with four blocks, a, i, f "
      "and o, along axis 1.";
  r.errors = {
      type_error("LSTM", {{3, 2}, {3, 6}},
                 "Expect: x.shape[1] == c_prev.shape[1] * 4\nActual: 6 != 8\nInputs: c_prev "
                 "float64 (3, 2), x float64 (3, 6)" +
                     expected),
      type_error("LSTM", {{2, 2}, {3, 8}},
                 "Expect: x.shape[0] == c_prev.shape[0]\nActual: 3 != 2\nInputs: c_prev float64 "
                 "(2, 2), x float64 (3, 8)" +
                     expected),
      type_error("LSTM", {{2}, {8}},
                 "Expect: c_prev.ndim >= 2\nActual: 1 < 2\nInputs: c_prev float64 (2,), x float64 "
                 "(8,)" +
                     expected),
      type_error("LSTM", {{3, 2, 4}, {3, 8}},
                 "Expect: x.ndim == c_prev.ndim\nActual: 2 != 3\nInputs: c_prev float64 (3, 2, 4), "
                 "x float64 (3, 8)" +
                     expected),
      type_error("LSTM", {{3, 2, 4}, {3, 8, 5}},
                 "Expect: x.shape[2] == c_prev.shape[2]\nActual: 5 != 4\nInputs: c_prev float64 "
                 "(3, 2, 4), x float64 (3, 8, 5)" +
                     expected),
      type_error("LSTM", {{{3, 2}, Dtype::kInt32}, {{3, 8}, Dtype::kInt32}},
                 "Expect: x.dtype.kind == f\nActual: i != f\nInputs: c_prev int32 (3, 2), x int32 "
                 "(3, 8)\nExpected is a floating dtype: convert x with .astype(dtype::float32)."),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(lstm_cell) { return {lstm_record(), lstm_errors()}; }

}  // namespace catena
