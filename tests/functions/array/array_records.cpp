// Records of functions that rearrange arrays.
#include <algorithm>
#include <numeric>

#include "catena/functions/array.h"
#include "functions/array/view_record.h"

namespace catena {
namespace {

// The same numbers in another shape.
UnaryReference as_shape(std::function<Shape(const Shape&)> shape) {
  return [=](const Plain& x) { return Plain{shape(x.shape), x.values}; };
}

FunctionRecords reshape_records() {
  const auto fixed = [](Shape shape) { return as_shape([=](const Shape&) { return shape; }); };
  FunctionRecord r = view_record(
      "reshape", "", {{4, 3, 2}, {24}},
      [](const Variable& v) {
        return F::reshape(v, {2, -1, 6});
      },
      fixed({2, 2, 6}));
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
          view_record(
              "reshape", "no element", {{0, 3}},
              [](const Variable& v) {
                return F::reshape(v, {2, 0});
              },
              fixed({2, 0})),
          view_record(
              "reshape", "one element", {{}, {1, 1}},
              [](const Variable& v) { return F::reshape(v, {1}); }, fixed({1}))};
}

FunctionRecords unit_axis_records() {
  const auto inserted = [](Shape shape) {
    shape.insert(shape.begin() + 1, 1);
    return shape;
  };
  const auto without_units = [](const Shape& shape) {
    Shape rest;
    std::copy_if(shape.begin(), shape.end(), std::back_inserter(rest),
                 [](int64_t extent) { return extent != 1; });
    return rest;
  };
  const auto without_second = [](Shape shape) {
    shape.erase(shape.begin() + 1);
    return shape;
  };
  return {view_record(
              "expand_dims", "", {{2, 3, 4}, {0, 3}, {5}},
              [](const Variable& v) { return F::expand_dims(v, 1); }, as_shape(inserted)),
          view_record(
              "squeeze", "all", {{4, 1, 2, 1}, {1, 1}, {0, 1}},
              [](const Variable& v) { return F::squeeze(v); }, as_shape(without_units)),
          view_record(
              "squeeze", "one axis", {{4, 1, 2, 1}, {0, 1}},
              [](const Variable& v) { return F::squeeze(v, 1); }, as_shape(without_second))};
}

// Axis i of the result is axis order(ndim)[i] of x.
UnaryReference permuted(std::function<std::vector<int>(int)> order) {
  return [=](const Plain& x) {
    const std::vector<int> from = order(x.shape.ndim());
    Shape shape = x.shape;
    for (size_t i = 0; i < from.size(); ++i) shape[i] = x.shape[size_t(from[i])];
    return plain(shape, [&](const Shape& index) {
      Shape at = index;
      for (size_t i = 0; i < from.size(); ++i) at[size_t(from[i])] = index[i];
      return x.at(at);
    });
  };
}

FunctionRecords transpose_records() {
  const auto reversed = [](int ndim) {
    std::vector<int> order(size_t(ndim), 0);
    std::iota(order.rbegin(), order.rend(), 0);
    return order;
  };
  const auto ends = [](int ndim) {
    std::vector<int> order(size_t(ndim), 0);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order.front(), order.back());
    return order;
  };
  return {view_record(
              "transpose", "reversed", {{4, 3, 2}, {3}, {}, {0, 2}},
              [](const Variable& v) { return F::transpose(v); }, permuted(reversed)),
          view_record(
              "transpose", "axes", {{4, 3, 2}, {0, 3, 2}},
              [](const Variable& v) {
                return F::transpose(v, {-1, 0, 1});
              },
              permuted([](int) {
                return std::vector<int>{2, 0, 1};
              })),
          view_record(
              "swapaxes", "", {{4, 3, 2}, {3}, {0, 2}},
              [](const Variable& v) { return F::swapaxes(v, 0, -1); }, permuted(ends))};
}

Plain broadcast_of(const Plain& x, const Shape& shape) {
  return plain(shape, [&](const Shape& index) {
    Shape at(x.shape.size(), 0);
    const size_t lead = shape.size() - x.shape.size();
    for (size_t i = 0; i < at.size(); ++i) at[i] = x.shape[i] == 1 ? 0 : index[lead + i];
    return x.at(at);
  });
}

FunctionRecords broadcast_records() {
  FunctionRecord to = view_record(
      "broadcast_to", "", {{4, 1, 2}, {2}, {}, {5, 4, 3, 2}},
      [](const Variable& v) {
        return F::broadcast_to(v, {5, 4, 3, 2});
      },
      [](const Plain& x) {
        return broadcast_of(x, {5, 4, 3, 2});
      });
  to.backward_launches = 1;
  FunctionRecord all;
  all.function = "broadcast";
  all.shapes = {{{3, 1}, {4}, {}}, {{0, 1}, {2}, {1, 1}}};
  all.call = [](const Variables& v) { return F::broadcast(v); };
  all.reference = [](const Plains& in) {
    const Shape shape{in[0].shape[0], in[1].shape[0]};
    return Plains{broadcast_of(in[0], shape), broadcast_of(in[1], shape),
                  broadcast_of(in[2], shape)};
  };
  all.errors = {type_error(
      "Broadcast",
      [](const Draw& draw) {
        F::broadcast({Variable(draw({3, 1})), Variable(draw({2, 2}))});
      },
      "Expect: each dimension has the same size or is 1\nActual: shapes: (3, 1), (2, 2)")};
  return {to, all};
}

Plain concat_of(const Plains& in, size_t axis) {
  Shape shape = in[0].shape;
  shape[axis] = 0;
  for (const Plain& x : in) shape[axis] += x.shape[axis];
  return plain(shape, [&](Shape index) {
    size_t k = 0;
    for (; index[axis] >= in[k].shape[axis]; ++k) index[axis] -= in[k].shape[axis];
    return in[k].at(index);
  });
}

FunctionRecord concat_record(int64_t axis, std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = "concat";
  r.variant = message("axis ", axis);
  r.shapes = std::move(shapes);
  r.call = [=](const Variables& v) { return Variables{F::concat(v, axis)}; };
  r.reference = [=](const Plains& in) {
    return Plains{concat_of(in, place_of(axis, in[0].shape))};
  };
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

// Parts of x along axis 1 between the positions and the end.
Plains parts_of(const Plain& x, std::vector<int64_t> positions) {
  Plains parts;
  positions.insert(positions.begin(), 0);
  positions.push_back(x.shape[1]);
  for (size_t k = 0; k + 1 < positions.size(); ++k) {
    Shape shape = x.shape;
    shape[1] = positions[k + 1] - positions[k];
    parts.push_back(plain(shape, [&](Shape index) {
      index[1] += positions[k];
      return x.at(index);
    }));
  }
  return parts;
}

FunctionRecords split_records() {
  FunctionRecord equal, at;
  equal.function = at.function = "split_axis";
  equal.variant = "equal parts";
  equal.shapes = {{{2, 6, 3}}, {{0, 3}}};
  equal.call = [](const Variables& v) { return F::split_axis(v[0], 3, 1); };
  equal.reference = [](const Plains& in) {
    const int64_t size = in[0].shape[1] / 3;
    return parts_of(in[0], {size, 2 * size});
  };
  equal.forward_launches = at.forward_launches = 0;
  at.variant = "positions";
  at.shapes = {{{2, 7}}, {{2, 5, 2}}};
  at.call = [](const Variables& v) { return F::split_axis(v[0], {2, 5}, -v[0].ndim() + 1); };
  at.reference = [](const Plains& in) { return parts_of(in[0], {2, 5}); };
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
  const auto second = [](const Plain& x) {
    return plain(Shape(x.shape.begin() + 1, x.shape.end()), [&](Shape index) {
      index.insert(index.begin(), 1);
      return x.at(index);
    });
  };
  const auto backwards = [](const Plain& x) {
    return plain({(x.shape[0] + 1) / 2, x.shape[1], 1},
                 [&](const Shape& index) { return x(x.shape[0] - 1 - 2 * index[0], index[1], 0); });
  };
  FunctionRecords records{
      view_record(
          "get_item", "row", {{4, 3, 2}, {2}, {3, 0}},
          [](const Variable& v) { return F::get_item(v, {1}); }, second),
      view_record(
          "get_item", "slices", {{4, 3, 2}, {0, 3, 2}},
          [](const Variable& v) {
            return F::get_item(v, {Slice(none, none, -2), ellipsis, newaxis, 0});
          },
          backwards)};
  for (FunctionRecord& r : records) r.backward_launches = 2;  // zeros, and the copy into them
  return records;
}

FunctionRecords copy_records() {
  const UnaryReference same = [](const Plain& x) { return x; };
  const Shapes shapes{{2, 3}, {}, {0, 3}};
  FunctionRecord cast = view_record(
      "cast", "to float64", shapes, [](const Variable& v) { return F::cast(v, Dtype::kFloat64); },
      same);
  cast.result_dtype = Dtype::kFloat64;
  FunctionRecord copy = view_record(
      "copy", "to another device and back", shapes,
      [](const Variable& v) { return F::copy(F::copy(v, "cpu:1"), v.device()); }, same);
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
