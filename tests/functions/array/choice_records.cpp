// Records of functions that choose, repeat and reorder elements.
#include "catena/functions/array/flip.h"
#include "catena/functions/array/one_hot.h"
#include "catena/functions/array/pad.h"
#include "catena/functions/array/repeat.h"
#include "catena/functions/array/separate.h"
#include "catena/functions/array/stack.h"
#include "catena/functions/array/take.h"
#include "functions/function_record.h"

namespace catena {
namespace {

// Joining and separating --------------------------------------------------------------------------

FunctionRecord stack_record(int64_t axis, std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = "stack";
  r.variant = message("axis ", axis);
  r.shapes = std::move(shapes);
  r.call = [=](const Variables& v) { return Variables{F::stack(v, axis)}; };
  r.forward_launches = 1;
  r.backward_launches = 0;
  return r;
}

FunctionRecords stack_records() {
  FunctionRecords records{stack_record(0, {{{2, 3}, {2, 3}, {2, 3}}, {{}, {}}, {{0, 2}, {0, 2}}}),
                          stack_record(1, {{{2, 3}, {2, 3}}}),
                          stack_record(-1, {{{2, 3}, {2, 3}}})};
  records.back().errors = {
      type_error(
          "Stack",
          [](const Draw& draw) {
            F::stack({Variable(draw({2, 3})), Variable(draw({2, 2}))});
          },
          "Expect: xs[1].shape[1] == xs[0].shape[1]\nActual: 2 != 3\nInputs: xs[0] float64 (2, 3), "
          "xs[1] float64 (2, 2)\nInputs of stack have one shape; concat joins along an axis they "
          "have."),
      error<ValueError>([](const Draw&) { F::stack({}); }, "Stack: expected at least one input"),
      error<ValueError>([](const Draw&) { F::hstack({}); }, "Hstack: expected at least one input"),
      error<ValueError>([](const Draw&) { F::vstack({}); }, "Vstack: expected at least one input"),
  };
  FunctionRecord across = stack_record(0, {});
  across.function = "hstack";
  across.variant = "vectors";
  across.shapes = {{{2}, {3}}, {{}, {2}}};
  across.call = [](const Variables& v) { return Variables{F::hstack(v)}; };
  FunctionRecord columns = across;
  columns.variant = "matrices";
  columns.shapes = {{{3, 1}, {3, 2}}};
  FunctionRecord rows = across;
  rows.function = "vstack";
  rows.variant = "vectors and matrices";
  rows.shapes = {{{3}, {2, 3}}};
  rows.call = [](const Variables& v) { return Variables{F::vstack(v)}; };
  records.insert(records.end(), {across, columns, rows});
  return records;
}

FunctionRecord separate_record(int64_t axis) {
  FunctionRecord r;
  r.function = "separate";
  r.variant = message("axis ", axis);
  r.shapes = {{{2, 3}}, {{2, 3, 2}}};
  r.call = [=](const Variables& v) { return F::separate(v[0], axis); };
  r.forward_launches = 0;
  r.errors = {error<IndexError>([](const Draw& draw) { F::separate(draw({3}), 1); },
                                "Separate: x has one axis, 0 or -1; the axis given is 1.")};
  return r;
}

// Padding -----------------------------------------------------------------------------------------

FunctionRecord pad_record(PadMode mode, const char* name) {
  FunctionRecord r = unary_record("pad", name, {{3, 4}, {5, 3}}, [=](const Variable& x) {
    return F::pad(x, PadWidths{{1, 0}, {2, 1}}, mode, 0.5);
  });
  if (mode == PadMode::kConstant) r.shapes.push_back({{0, 2}});
  return r;
}

FunctionRecords pad_records() {
  FunctionRecords records{
      pad_record(PadMode::kConstant, "constant"), pad_record(PadMode::kEdge, "edge"),
      pad_record(PadMode::kReflect, "reflect"), pad_record(PadMode::kSymmetric, "symmetric"),
      pad_record(PadMode::kWrap, "wrap")};
  records[0].errors = {
      error<ShapeError>(
          [](const Draw& draw) {
            F::pad(draw({2}), PadWidths{{1, 1}, {1, 1}}, PadMode::kEdge);
          },
          "Pad: 2 pairs of widths for an array of shape (2,)"),
      error<ValueError>(
          [](const Draw& draw) {
            F::pad(draw({2}), PadWidths{{1, -1}}, PadMode::kReflect);
          },
          "Pad: expected widths of at least 0, got (1, -1)"),
      error<ValueError>(
          [](const Draw& draw) {
            F::pad(draw({2, 0}), PadWidths{{0, 0}, {1, 0}}, PadMode::kEdge);
          },
          "Pad: cannot extend the empty axis 1 of shape (2, 0) in this mode; kConstant can"),
  };
  records.push_back(unary_record("pad", "one width", {{2, 3}, {3}, {}},
                                 [](const Variable& x) { return F::pad(x, 1); }));
  return records;
}

// Positions ---------------------------------------------------------------------------------------

FunctionRecord take_record(int64_t axis, Dtype dtype, std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = "take";
  r.variant = message("axis ", axis, ", ", dtype);
  r.ranges = {{-1, 1}, {is_unsigned_int(dtype) ? 0. : -2., 2, dtype}};
  r.shapes = std::move(shapes);
  r.call = binary([=](const Variable& x, const Variable& t) { return F::take(x, t, axis); });
  r.backward_launches = 1;
  return r;
}

FunctionRecords take_records() {
  FunctionRecords records{
      take_record(0, Dtype::kInt64, {{{2, 3}, {5}}, {{3}, {}}, {{2, 0}, {3}}, {{2, 3}, {0}}}),
      take_record(1, Dtype::kInt32, {{{2, 3, 2}, {2, 2}}}),
      take_record(-1, Dtype::kUInt8, {{{2, 3}, {4}}})};
  FunctionRecord flat = take_record(0, Dtype::kInt64, {{{2, 3}, {4}}});
  flat.variant = "flattened";
  flat.call = binary([](const Variable& x, const Variable& t) { return F::take(x, t); });
  records.push_back(flat);
  records.back().errors = {
      type_error("Take", {{3}, {2}},
                 "Expect: indices.dtype.kind == i\nActual: f != i\nInputs: x float64 (3,), indices "
                 "float64 "
                 "(2,)\nPositions are integers: convert them with .astype(dtype::int32)."),
      error<IndexError>([](const Draw& draw) { F::take(draw({3}), draw.labels({0}, {1}), 1); },
                        "Take: x has one axis, 0 or -1; the axis given is 1."),
  };
  return records;
}

FunctionRecord along_record(int64_t axis, std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = "take_along_axis";
  r.variant = message("axis ", axis);
  r.ranges = {{-1, 1}, {-2, 2, Dtype::kInt64}};
  r.shapes = std::move(shapes);
  r.call =
      binary([=](const Variable& x, const Variable& t) { return F::take_along_axis(x, t, axis); });
  r.errors = {error<ShapeError>(
      [](const Draw& draw) {
        F::take_along_axis(draw({2, 3}), draw.labels({0, 1}, {2}), 1);
      },
      "TakeAlongAxis: positions of shape (2,) for a variable of shape (2, 3); expected as many "
      "axes")};
  return r;
}

FunctionRecord one_hot_record(Dtype dtype) {
  FunctionRecord r;
  r.function = "one_hot";
  r.variant = message(dtype);
  r.ranges = {{-1, 5, Dtype::kInt32}};
  r.shapes = {{{6}}, {{2, 3}}, {{}}, {{0}}};
  r.call = unary([=](const Variable& t) { return F::one_hot(t, 4, dtype); });
  r.result_dtype = dtype;
  r.differentiable = false;
  r.errors = {
      type_error("OneHot", {{2}},
                 "Expect: t.dtype.kind == i\nActual: f != i\nInputs: t float64 (2,)\nLabels are "
                 "integers: convert them with .astype(dtype::int32)."),
      error<ValueError>([](const Draw& draw) { F::one_hot(draw.labels({0}, {1}), -1); },
                        "OneHot: expected a number of classes, got -1")};
  return r;
}

// Orders and repetitions --------------------------------------------------------------------------

FunctionRecords order_records() {
  FunctionRecord all = unary_record("flip", "all axes", {{2, 3}, {}, {0, 2}},
                                    [](const Variable& x) { return F::flip(x); });
  FunctionRecord one = unary_record("flip", "one axis", {{2, 3}, {4, 3, 2}},
                                    [](const Variable& x) { return F::flip(x, 1); });
  all.forward_launches = all.backward_launches = one.forward_launches = one.backward_launches = 0;
  const auto rolled = [](int64_t shift, int64_t axis) {
    return unary_record("roll", message("by ", shift, ", axis ", axis), {{3, 4}, {2, 3, 2}, {2, 0}},
                        [=](const Variable& x) { return F::roll(x, shift, axis); });
  };
  FunctionRecord flat = unary_record("roll", "flattened", {{2, 3}, {}},
                                     [](const Variable& x) { return F::roll(x, 2); });
  return {all, one, rolled(1, 0), rolled(-5, -1), flat};
}

FunctionRecords repeat_records() {
  const auto repeated = [](int64_t count, int64_t axis) {
    return unary_record("repeat", message(count, " times, axis ", axis),
                        {{2, 3}, {3, 2, 2}, {0, 2}},
                        [=](const Variable& x) { return F::repeat(x, count, axis); });
  };
  FunctionRecord flat = unary_record("repeat", "flattened", {{2, 3}, {}},
                                     [](const Variable& x) { return F::repeat(x, 2); });
  flat.errors = {error<ValueError>([](const Draw& draw) { F::repeat(draw({2}), -1); },
                                   "Repeat: expected a count of at least 0, got -1"),
                 error<ValueError>(
                     [](const Draw& draw) {
                       F::tile(draw({2}), {2, -1});
                     },
                     "Tile: negative repetition in (2, -1)")};
  const auto tiled = [](Shape times, Shapes inputs) {
    return unary_record("tile", message(times), std::move(inputs),
                        [=](const Variable& x) { return F::tile(x, times); });
  };
  return {repeated(2, 0),
          repeated(3, -1),
          repeated(0, 0),
          flat,
          tiled({2}, {{2, 3}, {3}, {}}),
          tiled({3, 1, 2}, {{2, 3}, {2, 1, 2}, {0, 2}})};
}

}  // namespace

CATENA_FUNCTION_RECORDS(choice) {
  return joined({{separate_record(0), separate_record(-1), one_hot_record(Dtype::kFloat32),
                  one_hot_record(Dtype::kFloat64), one_hot_record(Dtype::kInt32),
                  along_record(0, {{{2, 3}, {4, 3}}, {{2, 3}, {4, 1}}, {{2, 0}, {1, 0}}}),
                  along_record(-1, {{{3, 2}, {3, 4}}, {{3, 4, 2}, {3, 4, 1}}})},
                 stack_records(),
                 pad_records(),
                 take_records(),
                 order_records(),
                 repeat_records()});
}

}  // namespace catena
