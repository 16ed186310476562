// Records of swiglu, geglu and geglu_tanh, of two operands and of one.
#include "catena/functions/activation/gated.h"
#include "functions/function_record.h"

namespace catena {
namespace {

namespace F = functions;
FunctionRecord pair(const char* function,
                    Variable (*f)(const VariableOperand&, const VariableOperand&)) {
  FunctionRecord r;
  r.function = function;
  r.ranges = {{-4, 4}, {-2, 2}};
  r.shapes = {{{2, 37}, {2, 37}},
              {{}, {}},
              {{0, 3}, {0, 3}},
              {{2, 3, 4, 2}, {2, 3, 4, 2}},
              {{3, 64}, {3, 64}}};
  r.call = binary([f](const Variable& g, const Variable& x) { return f(g, x); });
  r.forward_launches = r.backward_launches = 1;
  return r;
}

FunctionRecord packed(const char* function, Variable (*f)(const VariableOperand&)) {
  FunctionRecord r;
  r.function = function;
  r.variant = "packed";
  r.ranges = {{-4, 4}};
  r.shapes = {{{2, 74}}, {{2}}, {{0, 6}}, {{3, 0}}, {{2, 3, 4, 2}}, {{2, 3, 6}}, {{3, 64}}};
  r.call = unary([f](const Variable& x) { return f(x); });
  r.forward_launches = r.backward_launches = 1;
  return r;
}

FunctionRecord with_errors(FunctionRecord r) {
  const std::string advice =
      "\nExpected are a gate and an x of one shape; broadcast_to makes them that.";
  r.errors = {
      type_error("SwiGLU", WrongInputs{{{2, 3}, Dtype::kInt32}, {{2, 3}, Dtype::kInt32}},
                 "Expect: gate.dtype.kind == f\nActual: i != f\nInputs: gate int32 (2, 3), x int32 "
                 "(2, 3)\nExpected is a floating dtype: convert gate with "
                 ".astype(dtype::float32)."),
      type_error(
          "SwiGLU", WrongInputs{{2, 3}, {{2, 3}, Dtype::kFloat32}},
          "Expect: x.dtype == gate.dtype\nActual: float32 != float64\nInputs: gate float64 "
          "(2, 3), x float32 (2, 3)\nThe inputs are float64 and float32: convert the float64 "
          "one with .astype(dtype::float32), or make arrays of float32 by "
          "config().default_dtype = dtype::float32."),
      type_error("SwiGLU", WrongInputs{{2, 3}, {3}},
                 "Expect: x.ndim == gate.ndim\nActual: 1 != 2\nInputs: gate float64 (2, 3), x "
                 "float64 (3,)" +
                     advice),
      type_error("SwiGLU", WrongInputs{{2, 3}, {2, 4}},
                 "Expect: x.shape[1] == gate.shape[1]\nActual: 4 != 3\nInputs: gate float64 (2, "
                 "3), x float64 (2, 4)" +
                     advice),
  };
  return r;
}

FunctionRecord with_packed_errors(FunctionRecord r) {
  const std::string advice =
      "\nThe last axis is expected to hold the gates and then as many numbers that they multiply.";
  r.errors = {
      type_error("GeGLU", WrongInputs{{2, 5}},
                 "Expect: packed.shape[1] % 2 == 0\nActual: 1 != 0\nInputs: packed float64 (2, 5)" +
                     advice),
      type_error("GeGLU", WrongInputs{WrongInput(Shape{}, Dtype::kFloat64)},
                 "Expect: packed.ndim >= 1\nActual: 0 < 1\nInputs: packed float64 ()" + advice),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(gated) {
  return {with_errors(pair("swiglu", &F::swiglu)),
          packed("swiglu", &F::swiglu),
          pair("geglu", &F::geglu),
          with_packed_errors(packed("geglu", &F::geglu)),
          pair("geglu_tanh", &F::geglu_tanh),
          packed("geglu_tanh", &F::geglu_tanh)};
}

}  // namespace catena
