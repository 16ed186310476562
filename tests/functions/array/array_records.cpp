// Records of functions that rearrange arrays.
#include "catena/functions/array.h"
#include "functions/array/view_record.h"

namespace catena {
namespace {

FunctionRecords reshape_records() {
  FunctionRecord r = view_record("reshape", "", {{4, 3, 2}, {24}}, [](const Variable& v) {
    return F::reshape(v, {2, -1, 6});
  });
  const auto call = [](Shape shape) {
    return [=](const Draw& draw) { F::reshape(draw({4, 3, 2}), shape); };
  };
  const std::string came = "\nInputs: x float64 (4, 3, 2)\n";
  r.errors = {
      type_error("Reshape", call({5, -1}),
                 "Expect: prod(x.shape) % known_size(=5) == 0\nActual: 4 != 0" + came +
                     "x has 24 elements; the extents of (5, -1) beside -1 make 5, which does not "
                     "divide that: give extents that do."),
      type_error("Reshape", call({5, 2}),
                 "Expect: prod(x.shape) == prod(5, 2)\nActual: 24 != 10" + came +
                     "x has 24 elements, (5, 2) has 10: give a shape of 24 elements, or -1 for one "
                     "extent that follows from the others."),
      type_error(
          "Reshape", call({0, -1}),
          "Expect: known_size(=0) != 0\nActual: 0 == 0" + came +
              "Beside an extent of 0 any number fits for the -1 of (0, -1): write the number."),
      error<ValueError>(call({-1, -1}), "Reshape: at most one extent may be -1, got (-1, -1)"),
  };
  return {r,
          view_record("reshape", "no element", {{0, 3}},
                      [](const Variable& v) {
                        return F::reshape(v, {2, 0});
                      }),
          view_record("reshape", "one element", {{}, {1, 1}},
                      [](const Variable& v) { return F::reshape(v, {1}); })};
}

FunctionRecords unit_axis_records() {
  return {view_record("expand_dims", "", {{2, 3, 4}, {0, 3}, {5}},
                      [](const Variable& v) { return F::expand_dims(v, 1); }),
          view_record("squeeze", "all", {{4, 1, 2, 1}, {1, 1}, {0, 1}},
                      [](const Variable& v) { return F::squeeze(v); }),
          view_record("squeeze", "one axis", {{4, 1, 2, 1}, {0, 1}},
                      [](const Variable& v) { return F::squeeze(v, 1); })};
}

FunctionRecords transpose_records() {
  return {view_record("transpose", "reversed", {{4, 3, 2}, {3}, {}, {0, 2}},
                      [](const Variable& v) { return F::transpose(v); }),
          view_record("transpose", "axes", {{4, 3, 2}, {0, 3, 2}},
                      [](const Variable& v) {
                        return F::transpose(v, {-1, 0, 1});
                      }),
          view_record("swapaxes", "", {{4, 3, 2}, {3}, {0, 2}},
                      [](const Variable& v) { return F::swapaxes(v, 0, -1); })};
}

FunctionRecords broadcast_records() {
  FunctionRecord to =
      view_record("broadcast_to", "", {{4, 1, 2}, {2}, {}, {5, 4, 3, 2}}, [](const Variable& v) {
        return F::broadcast_to(v, {5, 4, 3, 2});
      });
  to.backward_launches = 1;
  FunctionRecord all;
  all.function = "broadcast";
  all.shapes = {{{3, 1}, {4}, {}}, {{0, 1}, {2}, {1, 1}}};
  all.call = [](const Variables& v) { return F::broadcast(v); };
  all.errors = {type_error(
      "Broadcast",
      [](const Draw& draw) {
        F::broadcast({Variable(draw({3, 1})), Variable(draw({2, 2}))});
      },
      "Expect: each dimension has the same size or is 1\nActual: shapes: (3, 1), (2, 2)")};
  return {to, all};
}

FunctionRecord concat_record(int64_t axis, std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = "concat";
  r.variant = message("axis ", axis);
  r.shapes = std::move(shapes);
  r.call = [=](const Variables& v) { return Variables{F::concat(v, axis)}; };
  r.forward_launches = 1;
  r.backward_launches = 0;
  return r;
}

FunctionRecord concat_errors() {
  FunctionRecord r = concat_record(0, {{{2}, {3}}});
  r.variant = "errors";
  const auto call = [](Shapes shapes, int64_t axis) {
    return [=](const Draw& draw) {
      Variables inputs;
      for (const Shape& shape : shapes) inputs.emplace_back(draw(shape));
      F::concat(inputs, axis);
    };
  };
  r.errors = {
      type_error("Concat", call({{4, 3, 2}, {4, 3, 1}}, 1),
                 "Expect: xs[1].shape[2] == xs[0].shape[2]\nActual: 1 != 2\nInputs: xs[0] float64 "
                 "(4, 3, 2), xs[1] float64 (4, 3, 1)\nInputs of concat may differ in axis 1 only, "
                 "along which they are joined."),
      type_error(
          "Concat", call({{4, 3}, {4}}, 1),
          "Expect: xs[1].ndim == xs[0].ndim\nActual: 1 != 2\nInputs: xs[0] float64 (4, 3), xs[1] "
          "float64 (4,)\nInputs of concat may differ in axis 1 only, along which they are joined."),
      type_error(
          "Concat",
          [](const Draw& draw) {
            F::concat({Variable(draw({2})), Variable(draw({2}, 0, 1, 0, Dtype::kFloat32))}, 0);
          },
          "Expect: xs[1].dtype == xs[0].dtype\nActual: float32 != float64\nInputs: xs[0] float64 "
          "(2,), xs[1] float32 (2,)\n"
          "The inputs are float64 and float32: convert the float64 one with "
          ".astype(dtype::float32), or make arrays of float32 by config().default_dtype = "
          "dtype::float32."),
      error<IndexError>(
          call({{4, 3}}, 2),
          "Concat: xs[0] has 2 axes, 0 to 1, or -2 to -1 from the end; the axis given is 2."),
      error<ValueError>(call({}, 0), "Concat: expected at least one input"),
  };
  return r;
}

FunctionRecords split_records() {
  FunctionRecord equal, at;
  equal.function = at.function = "split_axis";
  equal.variant = "equal parts";
  equal.shapes = {{{2, 6, 3}}, {{0, 3}}};
  equal.call = [](const Variables& v) { return F::split_axis(v[0], 3, 1); };
  equal.forward_launches = at.forward_launches = 0;
  at.variant = "positions";
  at.shapes = {{{2, 7}}, {{2, 5, 2}}};
  at.call = [](const Variables& v) { return F::split_axis(v[0], {2, 5}, -v[0].ndim() + 1); };
  const auto call = [](auto cuts, int64_t axis) {
    return [=](const Draw& draw) { F::split_axis(draw({4, 3, 2}), cuts, axis); };
  };
  const std::string came = "\nInputs: x float64 (4, 3, 2)\n";
  const std::string axes =
      "SplitAxis: x has 3 axes, 0 to 2, or -3 to -1 from the end; the axis given is ";
  at.errors = {
      type_error("SplitAxis", call(2, 1),
                 "Expect: x.shape[1] % sections == 0\nActual: 1 != 0" + came +
                     "Axis 1 has 3 elements, which cannot be cut into 2 equal parts: give a number "
                     "that divides them, or the positions of the cuts, split_axis(x, {1, 3})."),
      error<IndexError>(call(2, 3), axes + "3."),
      error<IndexError>(call(2, -4), axes + "-4."),
      type_error(
          "SplitAxis", call(Axes{1, 5}, 0),
          "Expect: x.shape[0] >= max_index\nActual: 4 < 5" + came +
              "Axis 0 has 4 elements: positions of cuts are 0 to 4; those given are (1, 5)."),
      error<ValueError>(call(0, 1), "SplitAxis: expected at least one section, got 0"),
      error<ValueError>(call(Axes{2, 1}, 1), "SplitAxis: cut positions must ascend, got (2, 1)"),
  };
  return {equal, at};
}

FunctionRecords get_item_records() {
  FunctionRecords records{
      view_record("get_item", "row", {{4, 3, 2}, {2}, {3, 0}},
                  [](const Variable& v) { return F::get_item(v, {1}); }),
      view_record("get_item", "slices", {{4, 3, 2}, {0, 3, 2}}, [](const Variable& v) {
        return F::get_item(v, {Slice(none, none, -2), ellipsis, newaxis, 0});
      })};
  for (FunctionRecord& r : records) r.backward_launches = 2;  // zeros, and the copy into them
  return records;
}

FunctionRecords copy_records() {
  const Shapes shapes{{2, 3}, {}, {0, 3}};
  FunctionRecord cast = view_record("cast", "to float64", shapes,
                                    [](const Variable& v) { return F::cast(v, Dtype::kFloat64); });
  cast.result_dtype = Dtype::kFloat64;
  FunctionRecord copy =
      view_record("copy", "to another device and back", shapes,
                  [](const Variable& v) { return F::copy(F::copy(v, "cpu:1"), v.device()); });
  copy.forward_launches = copy.backward_launches = {};
  return {cast, copy};
}

}  // namespace

CATENA_FUNCTION_RECORDS(array) {
  return joined({{concat_record(1, {{{2, 3, 2}, {2, 1, 2}, {2, 0, 2}}, {{0, 3}, {0, 2}}}),
                  concat_record(-1, {{{2, 2}, {2, 2}}}), concat_errors()},
                 reshape_records(),
                 unit_axis_records(),
                 transpose_records(),
                 broadcast_records(),
                 split_records(),
                 get_item_records(),
                 copy_records()});
}

}  // namespace catena
