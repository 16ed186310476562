// Records of column_stack and block.
#include "catena/functions/array/stack.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord joined_record(std::string function, std::string variant, Shapes inputs,
                             std::function<Variable(const Variables&)> call, int launches) {
  FunctionRecord r;
  r.function = std::move(function);
  r.variant = std::move(variant);
  r.shapes = {std::move(inputs)};
  r.call = [call = std::move(call)](const Variables& v) { return Variables{call(v)}; };
  r.forward_launches = launches;
  r.backward_launches = 0;
  return r;
}

FunctionRecords column_stack_records() {
  const auto record = [](std::string variant, Shapes inputs, int launches) {
    return joined_record("column_stack", std::move(variant), std::move(inputs), &F::column_stack,
                         launches);
  };
  FunctionRecord mixed = record("vectors and a matrix", {{3}, {3, 2}, {3}}, 1);
  const auto call = [](Shape a, Shape b) {
    return [=](const Draw& draw) { F::column_stack({draw(a), draw(b)}); };
  };
  mixed.errors = {
      error<ValueError>([](const Draw&) { F::column_stack({}); },
                        "ColumnStack: expected at least one input"),
      error<ShapeError>(call({3}, {3, 1, 1}),
                        "ColumnStack: input 1 has shape (3, 1, 1); expected 1 or 2 axes"),
      error<ShapeError>(call({}, {1}), "ColumnStack: input 0 has shape (); expected 1 or 2 axes"),
      type_error("Concat", call({3}, {2}),
                 "Expect: xs[1].shape[0] == xs[0].shape[0]\nActual: 2 != 3\nInputs: xs[0] float64 "
                 "(3, 1), xs[1] float64 (2, 1)\nInputs of concat may differ in axis 1 only, along "
                 "which they are joined."),
  };
  return {mixed, record("vectors", {{2}, {2}}, 1), record("no rows", {{0}, {0, 2}}, 0)};
}

FunctionRecords block_records() {
  FunctionRecord square = joined_record(
      "block", "two rows", {{2, 3}, {2, 1}, {1, 2}, {2}},
      [](const Variables& v) {
        return F::block({{v[0], v[1]}, {v[2], v[3]}});
      },
      3);
  const auto call = [](Shape a, Shape b, Dtype dtype) {
    return [=](const Draw& draw) { F::block({{draw(a)}, {draw(b, 0, 1, 0, dtype)}}); };
  };
  square.errors = {
      error<ValueError>([](const Draw&) { F::block({}); },
                        "Block: expected at least one row of blocks"),
      error<ValueError>(
          [](const Draw& draw) {
            F::block({{draw({2})}, {}});
          },
          "Block: a row has no blocks; expected at least one in each row"),
      type_error("Concat", call({2, 2}, {1, 3}, Dtype::kFloat64),
                 "Expect: xs[1].shape[1] == xs[0].shape[1]\nActual: 3 != 2\nInputs: xs[0] float64 "
                 "(2, 2), xs[1] float64 (1, 3)\nInputs of concat may differ in axis 0 only, along "
                 "which they are joined."),
  };
  return {square,
          joined_record(
              "block", "one row of vectors and a number", {{2}, {}, {1}},
              [](const Variables& v) { return F::block({v}); }, 1),
          joined_record(
              "block", "rows of one block", {{3}, {2, 3}},
              [](const Variables& v) {
                return F::block({{v[0]}, {v[1]}});
              },
              1),
          joined_record(
              "block", "one image in two rows", {{1, 1, 2}, {1, 1, 2}},
              [](const Variables& v) {
                return F::block({{v[0]}, {v[1]}});
              },
              1)};
}

}  // namespace

CATENA_FUNCTION_RECORDS(blocks) { return joined({column_stack_records(), block_records()}); }

}  // namespace catena
