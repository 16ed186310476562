// Records of mathematics beside the rows of the element-wise table: reductions, products, and the
// functions that are made of rows.
#include <algorithm>

#include "functions/function_record.h"

namespace catena {
namespace {

// Reductions ------------------------------------------------------------------------------------

struct Reduction {
  const char *name, *label;
  Variable (*call)(const VariableOperand&, const ReduceAxes&, YesNo);
  double (*reference)(const Numbers&);
  std::optional<int> backward_launches = {};
};
double smallest_of(const Numbers& x) { return *std::min_element(x.begin(), x.end()); }
const Reduction kArrayReductions[] = {{"sum", "Sum", F::sum, added_up, 0},
                                      {"mean", "Mean", F::mean, mean_of, 1},
                                      {"average", "Mean", F::average, mean_of, 1},
                                      {"max", "Max", F::max, largest_of},
                                      {"min", "Min", F::min, smallest_of}};

FunctionRecord reduction_record(const Reduction& f, const Axes& axes, bool keepdims) {
  FunctionRecord r;
  r.function = f.name;
  r.variant = message("axes ", axes, keepdims ? ", kept" : "");
  r.shapes = {{{3, 2, 4}}};
  if (axes.empty()) r.shapes.push_back({{}});
  if (f.call == F::sum) r.shapes.push_back({{3, 0, 2}});
  r.call = unary([=](const Variable& x) { return f.call(x, axes, keepdims); });
  r.reference = [=](const Plains& in) {
    return Plains{over_axes(in[0], axes, keepdims, f.reference)};
  };
  r.forward_launches = 1;
  r.backward_launches = f.backward_launches;
  const std::string label = f.label;
  for (const int64_t axis : {3, -4}) {
    r.errors.push_back(error<IndexError>(
        [=](const Draw& draw) {
          f.call(draw({4, 3, 2}), axis, false);
        },
        message(label, ": x has 3 axes, 0 to 2, or -3 to -1 from the end; the axis given is ", axis,
                ".")));
  }
  r.errors.push_back(integers_refused(label, {4, 3, 2}));
  return r;
}

FunctionRecord sum_to_record() {
  FunctionRecord r;
  r.function = "sum_to";
  r.shapes = {{{4, 3, 2}}, {{3, 2}}, {{3, 1}}, {{0, 3, 2}}};
  r.call = unary([](const Variable& x) { return F::sum_to(x, {3, 1}); });
  r.reference = [](const Plains& in) {
    const Axes axes = in[0].shape.ndim() == 3 ? Axes{0, 2} : Axes{1};
    return Plains{{{3, 1}, over_axes(in[0], axes, false, added_up).values}};
  };
  r.forward_launches = 1;
  r.backward_launches = 0;
  return r;
}

// Products --------------------------------------------------------------------------------------

// A row-major matrix of a stack, transposed on request; a vector is a column.
struct Matrix {
  const Plain& x;
  size_t lead;  // axes before the matrix
  bool transposed;
  int64_t extent(size_t axis) const {
    const size_t from = lead + (transposed ? 1 - axis : axis);
    return from < x.shape.size() ? x.shape[from] : 1;
  }
  double operator()(int64_t stack, int64_t row, int64_t column) const {
    const int64_t rows = x.shape[lead], columns = lead + 1 < x.shape.size() ? x.shape[lead + 1] : 1;
    if (transposed) std::swap(row, column);
    return x.values[size_t((stack * rows + row) * columns + column)];
  }
};

Plain product_of(const Plains& in, size_t lead, bool transa, bool transb) {
  const Matrix a{in[0], lead, transa}, b{in[1], lead, transb};
  Shape shape(in[0].shape.begin(), in[0].shape.begin() + int64_t(lead));
  shape.push_back(a.extent(0));
  shape.push_back(b.extent(1));
  return plain(shape, [&](const Shape& i) {
    double total = 0;
    const int64_t stack = lead ? i[0] : 0;
    for (int64_t k = 0; k < a.extent(1); ++k)
      total += a(stack, i[lead], k) * b(stack, k, i[lead + 1]);
    return total;
  });
}

FunctionRecord product_record(bool batch, bool transa, bool transb, std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = batch ? "batch_matmul" : "matmul";
  r.variant = message(shapes[0][0], " and ", shapes[0][1], transa ? ", a transposed" : "",
                      transb ? ", b transposed" : "");
  r.shapes = std::move(shapes);
  r.call = binary([=](const Variable& a, const Variable& b) {
    return batch ? F::batch_matmul(a, b, transa, transb) : F::matmul(a, b, transa, transb);
  });
  r.reference = [=](const Plains& in) { return Plains{product_of(in, batch, transa, transb)}; };
  r.forward_launches = 1;
  r.backward_launches = 2;
  return r;
}

FunctionRecords product_records() {
  FunctionRecords records;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const auto shaped = [](int64_t rows, int64_t columns, bool transposed, int64_t stacks) {
        Shape shape = transposed ? Shape{columns, rows} : Shape{rows, columns};
        if (stacks >= 0) shape.insert(shape.begin(), stacks);
        return shape;
      };
      const auto pair = [&](int64_t stacks, int64_t rows) {
        return Shapes{shaped(rows, 3, ta, stacks), shaped(3, 2, tb, stacks)};
      };
      records.push_back(product_record(false, ta, tb, {pair(-1, 4), pair(-1, 0)}));
      records.push_back(product_record(true, ta, tb, {pair(5, 4), pair(0, 4)}));
    }
  }
  records.push_back(product_record(false, true, false, {{{3}, {3}}}));
  records.push_back(product_record(false, false, true, {{{3}, {3}}}));
  records.push_back(product_record(false, false, false, {{{4, 3}, {3}}, {{2, 0}, {0, 3}}}));
  records.push_back(product_record(true, true, false, {{{5, 3}, {5, 3, 2}}}));
  return records;
}

// Leading axes broadcast, a vector is a column.
Plain stack_product_of(const Plains& in, bool transa, bool transb) {
  const auto as_matrix = [](Shape shape) {
    if (shape.ndim() == 1) shape.push_back(1);
    return shape;
  };
  const Shape a = as_matrix(in[0].shape), b = as_matrix(in[1].shape);
  Shape shape = broadcast_shapes(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  const int lead = shape.ndim();
  shape.push_back(a[size_t(a.ndim() - (transa ? 1 : 2))]);
  shape.push_back(b[size_t(b.ndim() - (transb ? 2 : 1))]);
  // Element (row, column) of the matrix of an operand that belongs to one of the result.
  const auto element = [lead](const Plain& x, const Shape& own, const Shape& at, int64_t row,
                              int64_t column) {
    Shape index;
    const int axes = own.ndim() - 2;
    for (int k = 0; k < axes; ++k)
      index.push_back(own[size_t(k)] == 1 ? 0 : at[size_t(lead - axes + k)]);
    index.push_back(row);
    index.push_back(column);
    return Plain{own, x.values}.at(index);
  };
  const int64_t depth = a[size_t(a.ndim() - (transa ? 2 : 1))];
  return plain(shape, [&](const Shape& at) {
    const int64_t i = at[size_t(lead)], j = at[size_t(lead + 1)];
    double total = 0;
    for (int64_t k = 0; k < depth; ++k)
      total += (transa ? element(in[0], a, at, k, i) : element(in[0], a, at, i, k)) *
               (transb ? element(in[1], b, at, j, k) : element(in[1], b, at, k, j));
    return total;
  });
}

FunctionRecord stack_record(std::string variant, bool transa, bool transb,
                            std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = "matmul";
  r.variant = "stacks, " + variant;
  r.shapes = std::move(shapes);
  r.call =
      binary([=](const Variable& a, const Variable& b) { return F::matmul(a, b, transa, transb); });
  r.reference = [=](const Plains& in) { return Plains{stack_product_of(in, transa, transb)}; };
  return r;
}

FunctionRecords stack_records() {
  FunctionRecords records{
      stack_record("plain", false, false,
                   {{{2, 1, 4, 3}, {5, 3, 2}},
                    {{2, 4, 3}, {3, 2}},
                    {{4, 3}, {5, 3, 2}},
                    {{2, 4, 3}, {1, 3, 2}},
                    {{2, 4, 3}, {3}},
                    {{2, 0, 3}, {3, 2}}}),
      stack_record("a transposed", true, false, {{{2, 3, 4}, {3, 2}}, {{3, 4}, {2, 3, 2}}}),
      stack_record("b transposed", false, true, {{{2, 2, 4, 3}, {2, 3}}, {{2, 4, 3}, {2, 2, 3}}}),
      stack_record("both transposed", true, true, {{{2, 3, 4}, {2, 2, 3}}})};
  records[0].errors = {
      error<ShapeError>(
          {{2, 4, 3}, {5, 3, 2}},
          "MatMul: stacks of matrices (2, 4, 3) and (5, 3, 2) do not broadcast: axis -3 "
          "has 2 and 5"),
      type_error(
          "MatMul", {{2, 4, 3}, {5, 2}},
          "Expect: a.shape[2] (3-D array) == b.shape[0] (2-D array)\nActual: 3 != 5\nInputs: "
          "a float64 (2, 4, 3), b float64 (5, 2)\nmatmul takes (m, k) and (k, n); a is (2, "
          "4, 3), b is (5, 2)."),
  };
  return records;
}

FunctionRecord matmul_errors(bool batch) {
  FunctionRecord r = batch ? product_record(true, false, false, {{{2, 3, 2}, {2, 2, 3}}})
                           : product_record(false, false, false, {{{2, 3}, {3, 2}}});
  r.variant = "errors";
  if (batch) {
    r.errors = {
        type_error("BatchMatMul", {{4, 3, 2}, {3, 2, 5}},
                   "Expect: a.shape[0] == b.shape[0]\nActual: 4 != 3\nInputs: a float64 (4, 3, 2), "
                   "b float64 (3, 2, 5)\na has 4 matrices, b has 3: give as many of both."),
        type_error("BatchMatMul", {{4}, {4, 2, 5}},
                   "Expect: a.ndim >= 2\nActual: 1 < 2\nInputs: a float64 (4,), b float64 (4, 2, "
                   "5)\nbatch_matmul takes stacks of matrices, (s, m, k), or of columns, (s, k); "
                   "the product of two matrices is matmul."),
    };
    return r;
  }
  r.errors = {
      type_error("MatMul", {{4, 3}, {2, 5}},
                 "Expect: a.shape[1] (2-D array) == b.shape[0] (2-D array)\n"
                 "Actual: 3 != 2\nInputs: a float64 (4, 3), b float64 (2, 5)\nmatmul takes (m, k) "
                 "and (k, n); a is (4, 3), b is (2, 5)."),
      type_error(
          "MatMul", {{4, 3}, {2, 3}},
          "Expect: a.shape[1] (2-D array) == b.shape[0] (2-D array)\n"
          "Actual: 3 != 2\nInputs: a float64 (4, 3), b float64 (2, 3)\nmatmul takes (m, k) and (k, "
          "n); a is (4, 3), b is (2, 3). They fit with transa = false and transb = true."),
      type_error("MatMul", {{3}, {2, 5}},
                 "Expect: 1 (1-D array) == b.shape[0] (2-D array)\nActual: 1 != 2\nInputs: a "
                 "float64 (3,), b float64 (2, 5)\nmatmul takes (m, k) and (k, n); a is (3,), a "
                 "column, b is (2, 5)."),
      type_error("MatMul", {{}, {2, 5}},
                 "Expect: a.ndim >= 1\nActual: 0 < 1\nInputs: a float64 (), b float64 (2, 5)\n"
                 "matmul takes matrices, stacks of matrices, and vectors as columns; products of "
                 "numbers are *."),
      type_error("MatMul", {{4, 3}, {{3, 5}, Dtype::kFloat32}},
                 "Expect: b.dtype == a.dtype\nActual: float32 != float64\nInputs: a float64 (4, "
                 "3), b float32 (3, 5)\n"
                 "The inputs are float64 and float32: convert the float64 one with "
                 ".astype(dtype::float32), or make arrays of float32 by config().default_dtype = "
                 "dtype::float32."),
  };
  return r;
}

// Made of rows ----------------------------------------------------------------------------------

FunctionRecords row_records() {
  FunctionRecord identity = elementwise_record(
      "identity", {}, [](const Variable& x) { return F::identity(x); }, [](double x) { return x; });
  identity.forward_launches = identity.backward_launches = 0;
  return {identity,
          elementwise_record(
              "pow", {0.5, 2}, [](const Variable& x) { return F::pow(x, 3); },
              [](double x) { return std::pow(x, 3); }),
          elementwise_record(
              "clip", {}, [](const Variable& x) { return F::clip(x, -0.5, 0.5); },
              [](double x) { return std::clamp(x, -0.5, 0.5); }),
          elementwise_record(
              "abs", {}, [](const Variable& x) { return F::abs(x); },
              [](double x) { return std::abs(x); })};
}

}  // namespace

CATENA_FUNCTION_RECORDS(math) {
  FunctionRecords records{sum_to_record(), matmul_errors(false), matmul_errors(true)};
  for (const Reduction& f : kArrayReductions) {
    for (const Axes& axes : {Axes{}, Axes{1}, Axes{-1}, Axes{0, 2}, Axes{1, -1}, Axes{0, 1, 2}}) {
      for (const bool keepdims : {false, true})
        records.push_back(reduction_record(f, axes, keepdims));
    }
  }
  return joined({records, product_records(), stack_records(), row_records()});
}

}  // namespace catena
