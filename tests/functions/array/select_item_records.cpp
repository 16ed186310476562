// Records of select_item.

#include "catena/functions/array/select_item.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord select_item_record(Dtype labels) {
  FunctionRecord r;
  r.function = "select_item";
  r.variant = message(labels, " labels");
  r.ranges = {{-1, 1}, {0, 3, labels}};
  r.shapes = {{{5, 3}, {5}}, {{1, 3}, {1}}, {{0, 3}, {0}}, {{0, 0}, {0}}, {{70, 3}, {70}}};
  r.call = binary([](const Variable& x, const Variable& t) { return F::select_item(x, t); });
  return r;
}

FunctionRecord select_item_errors() {
  FunctionRecord r = select_item_record(Dtype::kInt32);
  r.variant = "errors";
  const std::string expected = "\nExpected are x (n, classes) and t (n), a class for each row.";
  r.errors = {
      type_error(
          "SelectItem", {{2, 3}, {{3}, Dtype::kInt32}},
          "Expect: t.shape[0] == x.shape[0]\nActual: 3 != 2\nInputs: x float64 (2, 3), t int32 "
          "(3,)" +
              expected),
      type_error("SelectItem", {{2, 3, 1}, {{2}, Dtype::kInt32}},
                 "Expect: x.ndim == 2\nActual: 3 != 2\nInputs: x float64 (2, 3, 1), t int32 (2,)" +
                     expected),
      type_error("SelectItem", {{2, 3}, {{2, 1}, Dtype::kInt32}},
                 "Expect: t.ndim == 1\nActual: 2 != 1\nInputs: x float64 (2, 3), t int32 (2, 1)" +
                     expected),
      type_error("SelectItem", {{2, 3}, {2}},
                 "Expect: t.dtype == int32\nActual: float64 != int32\nInputs: x float64 (2, 3), t "
                 "float64 (2,)\nConvert t with .astype(dtype::int32)."),
      type_error(
          "SelectItem", {{{2, 1}, Dtype::kInt32}, {2}},
          "Expect: t.dtype == int32\nActual: float64 != int32\nInputs: x int32 (2, 1), t float64 "
          "(2,)\nThe arguments look swapped: it is select_item(x, t)."),
      type_error("SelectItem", {{{2, 1}, Dtype::kInt32}, {{2}, Dtype::kInt32}},
                 "Expect: x.dtype.kind == f\nActual: i != f\nInputs: x int32 (2, 1), t int32 "
                 "(2,)\nExpected is a floating dtype: convert x with .astype(dtype::float32)."),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(select_item) {
  return {select_item_record(Dtype::kInt32), select_item_record(Dtype::kInt64),
          select_item_record(Dtype::kUInt8), select_item_errors()};
}

}  // namespace catena
