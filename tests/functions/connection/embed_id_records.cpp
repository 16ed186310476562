// Records of embed_id.

#include "catena/functions/connection/embed_id.h"
#include "functions/function_record.h"

namespace catena {
namespace {

// Vectors by id; ids of [-1, 3) where -1 is ignored, else of [0, 3).
FunctionRecord embed_id_record(std::optional<int64_t> ignored, Dtype ids) {
  FunctionRecord r;
  r.function = "embed_id";
  r.variant = message(ids, " ids, ", ignored ? message(*ignored, " ignored") : "none ignored");
  r.ranges = {{ignored == -1 ? -1. : 0., 3, ids}};
  r.shapes = {{{5}, {3, 4}},    {{2, 3, 2}, {3, 2}}, {{}, {3, 5}},  {{0}, {3, 2}},
              {{2, 0}, {3, 2}}, {{4}, {3, 0}},       {{40}, {3, 9}}};
  r.call = [=](const Variables& v) { return Variables{F::embed_id(v[0], v[1], ignored)}; };
  // Other dtypes are cast; of uint64 the numbers that int64 does not hold are clipped.
  const bool direct = ids == Dtype::kInt32 || ids == Dtype::kInt64;
  r.forward_launches = direct ? 1 : ids == Dtype::kUInt64 ? 3 : 2;
  r.backward_launches = 1;
  return r;
}

FunctionRecord embed_id_errors() {
  FunctionRecord r = embed_id_record({}, Dtype::kInt32);
  r.variant = "errors";
  r.shapes = {{{5}, {3, 4}}};
  r.errors = {
      type_error("EmbedID", {{2}, {3, 4}},
                 "Expect: x.dtype == int32\nActual: float64 != int32\nInputs: x float64 (2,), W "
                 "float64 (3, 4)\nExpected are ids, integers: convert x with "
                 ".astype(dtype::int32)."),
      type_error("EmbedID", {{2}, {{3}, Dtype::kInt32}},
                 "Expect: x.dtype == int32\nActual: float64 != int32\nInputs: x float64 (2,), W "
                 "int32 (3,)\nThe arguments look swapped: it is embed_id(ids, W)."),
      type_error("EmbedID", {{{2}, Dtype::kInt32}, {{3, 4}, Dtype::kInt32}},
                 "Expect: W.dtype.kind == f\nActual: i != f\nInputs: x int32 (2,), W int32 (3, "
                 "4)\nExpected is a floating dtype: convert W with .astype(dtype::float32)."),
      type_error("EmbedID", {{{2}, Dtype::kInt32}, {3, 4, 1}},
                 "Expect: W.ndim == 2\nActual: 3 != 2\nInputs: x int32 (2,), W float64 (3, 4, "
                 "1)\nThe table W is expected as (ids, size), a matrix."),
      error<ValueError>(
          [](const Draw& draw) {
            F::embed_id(1, draw({3, 4}));
          },
          "EmbedID: expected a variable or an array, got a number"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(embed_id) {
  return {embed_id_record({}, Dtype::kInt32),
          embed_id_record({}, Dtype::kInt64),
          embed_id_record(-1, Dtype::kInt32),
          embed_id_record(-1, Dtype::kInt8),
          embed_id_record(1, Dtype::kInt64),
          embed_id_record({}, Dtype::kUInt64),
          embed_id_errors()};
}

}  // namespace catena
