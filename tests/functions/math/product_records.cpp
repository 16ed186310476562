// Records of the products of arrays, of running products and of differences.
#include "catena/functions/math/cumprod.h"
#include "catena/functions/math/diff.h"
#include "catena/functions/math/tensordot.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord product_record(std::string function, std::string variant, Shapes inputs,
                              std::function<Variable(const Variable&, const Variable&)> call) {
  FunctionRecord r;
  r.function = std::move(function);
  r.variant = std::move(variant);
  r.ranges = {{-1, 1}, {-1, 1}};
  r.shapes = {std::move(inputs)};
  r.call = binary(std::move(call));
  return r;
}

FunctionRecords dot_records() {
  const auto dot = [](const Variable& a, const Variable& b) { return F::dot(a, b); };
  const auto record = [&](std::string variant, Shapes inputs) {
    return product_record("dot", std::move(variant), std::move(inputs), dot);
  };
  FunctionRecord stacks = record("stacks", {{2, 3}, {2, 3, 2}});
  stacks.errors = {
      error<ShapeError>({{2, 3}, {2, 3}},
                        "Dot: axis 1 of a, (2, 3), and axis 0 of b, (2, 3), are summed together "
                        "and have different extents"),
      type_error("Dot", {{3}, {{3}, Dtype::kInt32}},
                 "Expect: b.dtype.kind == f\nActual: i != f\nInputs: a float64 (3,), b int32 (3,)\n"
                 "Expected is a floating dtype: convert b with .astype(dtype::float32)."),
      error<ValueError>([](const Draw& draw) { F::dot(draw({3}), 2.0); },
                        "Dot: expected a variable or an array, got a number"),
  };
  return {record("matrices", {{2, 3}, {3, 2}}),
          record("vectors", {{3}, {3}}),
          record("matrix and vector", {{2, 3}, {3}}),
          record("vector and matrix", {{3}, {3, 2}}),
          record("no elements summed", {{2, 0}, {0, 3}}),
          record("number", {{2, 3}, {}}),
          stacks};
}

FunctionRecords inner_records() {
  const auto inner = [](const Variable& a, const Variable& b) { return F::inner(a, b); };
  FunctionRecord matrices = product_record("inner", "matrices", {{2, 3}, {4, 3}}, inner);
  matrices.errors = {error<ShapeError>(
      {{2, 3}, {2}},
      "Inner: axis 1 of a, (2, 3), and axis 0 of b, (2,), are summed together and have different "
      "extents")};
  FunctionRecord sum =
      product_record("vdot", "", {{2, 3}, {3, 2}},
                     [](const Variable& a, const Variable& b) { return F::vdot(a, b); });
  sum.shapes.insert(sum.shapes.end(), {{{}, {1}}, {{0}, {2, 0}}});
  sum.errors = {error<ShapeError>({{2, 3}, {5}}, "Vdot: (2, 3) and (5,) have different sizes")};
  FunctionRecord outer =
      product_record("outer", "", {{2, 3}, {4}},
                     [](const Variable& a, const Variable& b) { return F::outer(a, b); });
  outer.shapes.insert(outer.shapes.end(), {{{}, {2}}, {{0}, {2}}});
  outer.errors = {type_error(
      "Outer", {{1}, {{1}, Dtype::kFloat32}},
      "Expect: b.dtype == a.dtype\nActual: float32 != float64\nInputs: a float64 (1,), b float32 "
      "(1,)\nThe inputs are float64 and float32: convert the float64 one with "
      ".astype(dtype::float32), or make arrays of float32 by config().default_dtype = "
      "dtype::float32.")};
  return {matrices, product_record("inner", "number", {{2, 3}, {}}, inner), sum, outer};
}

FunctionRecords kron_records() {
  FunctionRecord r =
      product_record("kron", "", {{2, 3}, {3, 2}},
                     [](const Variable& a, const Variable& b) { return F::kron(a, b); });
  r.shapes.insert(r.shapes.end(), {{{2}, {3}},
                                   {{3}, {2, 2}},
                                   {{2, 1, 2}, {2, 3}},
                                   {{}, {2}},
                                   {{2, 2}, {}},
                                   {{}, {}},
                                   {{0, 2}, {2, 2}}});
  r.forward_launches = 1;
  r.errors = {
      type_error("Kron", {{1}, {{1}, Dtype::kInt32}},
                 "Expect: b.dtype.kind == f\nActual: i != f\nInputs: a float64 (1,), b int32 (1,)\n"
                 "Expected is a floating dtype: convert b with .astype(dtype::float32)."),
      error<ShapeError>([](const Draw& draw) { F::kron(draw({2}), draw(Shape(13, 1))); },
                        "Kron: operands of shape (2,) and (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1); "
                        "expected at most 12 axes"),
      error<ValueError>([](const Draw& draw) { F::kron(2.0, draw({3})); },
                        "Kron: expected a variable or an array, got a number"),
  };
  return {r};
}

FunctionRecords tensordot_records() {
  const auto record = [](int64_t axes, Shapes inputs) {
    return product_record(
        "tensordot", message(axes, " axes"), std::move(inputs),
        [=](const Variable& a, const Variable& b) { return F::tensordot(a, b, axes); });
  };
  // (m, i, j) with (i, n, j), by i and j in either order.
  const auto pairs = [](std::string variant, Axes axes_a, Axes axes_b) {
    return product_record(
        "tensordot", std::move(variant), {{3, 2, 4}, {2, 3, 4}},
        [=](const Variable& a, const Variable& b) { return F::tensordot(a, b, axes_a, axes_b); });
  };
  FunctionRecord listed = pairs("lists", {1, 2}, {0, 2});
  const auto call = [](Axes axes_a, Axes axes_b) {
    return [=](const Draw& draw) {
      F::tensordot(draw({3, 2, 4}), draw({2, 3, 4}), axes_a, axes_b);
    };
  };
  listed.errors = {
      error<ValueError>(call({1, 2}, {0}),
                        "Tensordot: 2 axes of a against 1 of b; expected as many of both"),
      error<ValueError>(call({1, -2}, {0, 2}), "Tensordot: an axis is given twice in (1, -2)"),
      error<IndexError>(call({1, 3}, {0, 2}),
                        "Tensordot: axis 3 is out of range for an array of 3 dimensions"),
      error<ShapeError>(call({0}, {0}),
                        "Tensordot: axis 0 of a, (3, 2, 4), and axis 0 of b, (2, 3, 4), are summed "
                        "together and have different extents"),
      error<ValueError>(
          [](const Draw& draw) {
            F::tensordot(draw({3}), draw({3, 2}));
          },
          "Tensordot: cannot sum over 2 axes of (3,) and (3, 2)"),
      error<ValueError>([](const Draw& draw) { F::tensordot(draw({3}), draw({3}), -1); },
                        "Tensordot: cannot sum over -1 axes of (3,) and (3,)"),
  };
  return {record(2, {{2, 3, 2}, {3, 2, 2}}), record(1, {{2, 3}, {3, 2, 2}}),
          record(0, {{2, 3}, {2}}), listed, pairs("lists in another order", {-1, 1}, {2, -3})};
}

FunctionRecord cumprod_record(std::optional<int64_t> axis, const Shapes& shapes) {
  return unary_record("cumprod", axis ? message("axis ", *axis) : "flattened", shapes,
                      [=](const Variable& x) { return F::cumprod(x, axis); });
}

FunctionRecords diff_records() {
  FunctionRecords records;
  for (const int64_t n : {0, 1, 2, 3}) {
    for (const int64_t axis : {0, -1}) {
      records.push_back(unary_record("diff", message("n ", n, ", axis ", axis),
                                     {{4, 5}, {3}, {2, 2}, {0, 2}, {2, 0}},
                                     [=](const Variable& x) { return F::diff(x, n, axis); }));
    }
  }
  records.back().errors = {
      error<ValueError>([](const Draw& draw) { F::diff(draw({3}), -1); },
                        "Diff: expected n of at least 0, got -1"),
      error<IndexError>([](const Draw& draw) { F::diff(draw({3}), 1, 1); },
                        "Diff: x has one axis, 0 or -1; the axis given is 1."),
      integers_refused("Diff", {1}),
  };
  return records;
}

}  // namespace

CATENA_FUNCTION_RECORDS(product) {
  return joined({{cumprod_record({}, {{2, 3}, {}}), cumprod_record(0, {{5, 2}, {1, 2}, {0, 2}}),
                  cumprod_record(-1, {{3, 4}, {2, 2, 7}})},
                 dot_records(),
                 inner_records(),
                 kron_records(),
                 tensordot_records(),
                 diff_records()});
}

}  // namespace catena
