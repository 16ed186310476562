// Records of mathematics beside the rows of the element-wise table: reductions, products, and the
// functions that are made of rows.
#include "functions/function_record.h"

namespace catena {
namespace {

// Reductions ------------------------------------------------------------------------------------

struct Reduction {
  const char *name, *label;
  Variable (*call)(const VariableOperand&, const ReduceAxes&, YesNo);
  std::optional<int> backward_launches = {};
};
const Reduction kArrayReductions[] = {{"sum", "Sum", F::sum, 0},
                                      {"mean", "Mean", F::mean, 1},
                                      {"average", "Mean", F::average, 1},
                                      {"max", "Max", F::max},
                                      {"min", "Min", F::min}};

FunctionRecord reduction_record(const Reduction& f, const Axes& axes, bool keepdims) {
  FunctionRecord r;
  r.function = f.name;
  r.variant = message("axes ", axes, keepdims ? ", kept" : "");
  r.shapes = {{{3, 2, 4}}};
  if (axes.empty()) r.shapes.push_back({{}});
  if (f.call == F::sum) r.shapes.push_back({{3, 0, 2}});
  r.call = unary([=](const Variable& x) { return f.call(x, axes, keepdims); });
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
  r.forward_launches = 1;
  r.backward_launches = 0;
  return r;
}

// Products --------------------------------------------------------------------------------------

FunctionRecord product_record(bool batch, bool transa, bool transb, std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = batch ? "batch_matmul" : "matmul";
  r.variant = message(shapes[0][0], " and ", shapes[0][1], transa ? ", a transposed" : "",
                      transb ? ", b transposed" : "");
  r.shapes = std::move(shapes);
  r.call = binary([=](const Variable& a, const Variable& b) {
    return batch ? F::batch_matmul(a, b, transa, transb) : F::matmul(a, b, transa, transb);
  });
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

FunctionRecord stack_record(std::string variant, bool transa, bool transb,
                            std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = "matmul";
  r.variant = "stacks, " + variant;
  r.shapes = std::move(shapes);
  r.call =
      binary([=](const Variable& a, const Variable& b) { return F::matmul(a, b, transa, transb); });
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
  FunctionRecord identity =
      elementwise_record("identity", {}, [](const Variable& x) { return F::identity(x); });
  identity.forward_launches = identity.backward_launches = 0;
  return {identity,
          elementwise_record("pow", {0.5, 2}, [](const Variable& x) { return F::pow(x, 3); }),
          elementwise_record("clip", {}, [](const Variable& x) { return F::clip(x, -0.5, 0.5); }),
          elementwise_record("abs", {}, [](const Variable& x) { return F::abs(x); })};
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
