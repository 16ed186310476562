// Texts of fused chains: one statement for each value, rounded to the value's dtype. See
// fused_source.h.
#include "backends/cuda/jit/compile/fused_source.h"

#include <algorithm>
#include <map>

#include "backends/cuda/jit/compile/source.h"

namespace catena::jit {

namespace {

std::string value_name(int value) { return "t" + std::to_string(value); }

std::string number_text(const FusedValue& value) {
  return std::string("from_bits<") + type_name(value.dtype) + ">(" + std::to_string(value.bits) +
         "ull)";
}

// Operations with long code are called: one function for each operation and compute dtype.
std::string call_name(const FusedValue& value) {
  return std::string("fused_") + info(value.op).name + "_" + name(value.compute);
}
std::string call_definition(const FusedValue& value) {
  const ElementwiseInfo& row = info(value.op);
  std::string parameters, arguments;
  for (int k = 0; k < row.inputs; ++k) {
    const std::string number = std::to_string(k), comma = k ? ", " : "";
    parameters +=
        comma + "Compute<" + type_name(row.operand_dtype(k, value.compute)) + ">::type x" + number;
    arguments += comma + "x" + number;
  }
  return std::string("__device__ __noinline__ Compute<") + type_name(value.dtype) + ">::type " +
         call_name(value) + "(" + parameters + ") { return ops::" + row.functor + "::apply(" +
         arguments + "); }\n";
}

// The right-hand side of the statement of one value.
std::string expression(const FusedValue& value, const std::vector<std::string>& inputs) {
  switch (value.kind) {
    case FusedValue::kInput: return inputs[size_t(value.input)];
    case FusedValue::kNumber: return number_text(value);
    case FusedValue::kCast:
      return std::string("convert<") + type_name(value.dtype) + ">(" + value_name(value.source[0]) +
             ")";
    case FusedValue::kOp: break;
  }
  const ElementwiseInfo& row = info(value.op);
  std::string arguments;
  for (int k = 0; k < row.inputs; ++k)
    arguments += (k ? ", widen(" : "widen(") + value_name(value.source[k]) + ")";
  const std::string function = is_heavy(row, value.compute)
                                   ? call_name(value)
                                   : "ops::" + functor_of(row, value.compute) + "::apply";
  return std::string("convert<") + type_name(value.dtype) + ">(" + function + "(" + arguments +
         "))";
}

std::string statements(const FusedProgram& program, const std::vector<std::string>& inputs) {
  std::string text;
  for (size_t v = 0; v < program.values.size(); ++v) {
    const FusedValue& value = program.values[v];
    text += std::string("const ") + type_name(value.dtype) + " " + value_name(static_cast<int>(v)) +
            " = " + expression(value, inputs) + "; ";
  }
  return text;
}

// Functors and called functions of all operations.
std::string functions(const FusedProgram& program) {
  std::vector<std::string> functors;
  std::map<std::string, std::string> calls;
  for (const FusedValue& value : program.values) {
    if (value.kind != FusedValue::kOp) continue;
    const ElementwiseInfo& row = info(value.op);
    functors.push_back(functor_of(row, value.compute));
    if (is_heavy(row, value.compute)) calls.try_emplace(call_name(value), call_definition(value));
  }
  std::string text = functor_texts(functors) + "namespace catena { namespace jit {\n";
  for (const auto& [name, definition] : calls) text += definition;
  return text + "} }\n";
}

std::string accumulator(Dtype d) { return is_narrow_float(d) ? "float" : type_name(d); }

}  // namespace

std::string fused_source(const FusedProgram& program) {
  const int outputs = static_cast<int>(program.outputs.size());
  const int operands = outputs + static_cast<int>(program.inputs.size());
  std::string types = "namespace catena { namespace jit {\n";
  const auto operand = [&](int k, Dtype d) {
    types += "typedef " + std::string(type_name(d)) + " Operand" + std::to_string(k) + ";\n";
  };
  std::string stores;
  for (int k = 0; k < outputs; ++k) {
    operand(k, program.output_dtype(size_t(k)));
    stores += "V(" + std::to_string(k) + ") = " + value_name(program.outputs[size_t(k)]) + "; ";
  }
  std::vector<std::string> inputs;
  for (int k = outputs; k < operands; ++k) {
    operand(k, program.inputs[size_t(k - outputs)].dtype);
    inputs.push_back("V(" + std::to_string(k) + ")");
  }
  return common_text() + functions(program) + types + "} }\n" + operand_macros(outputs, operands) +
         "#define CATENA_ELEMENT(V) { " + statements(program, inputs) + stores + "}\n" +
         map_kernels_text();
}

ReductionKernel::Definition fused_reduction(const FusedProgram& program, ReduceOp op, bool mean,
                                            Dtype output) {
  ReductionKernel::Definition kernel;
  kernel.name = fused_name(program);
  const std::string type = accumulator(output);
  std::string parameters, arguments;
  std::vector<std::string> inputs;
  for (size_t k = 0; k < program.inputs.size(); ++k) {
    const Dtype d = program.inputs[k].dtype;
    const std::string name = "x" + std::to_string(k), comma = k ? ", " : "";
    parameters += comma + accumulator(d) + " " + name;
    arguments += comma + name;
    inputs.push_back(std::string("convert<") + type_name(d) + ">(" + name + ")");
    kernel.inputs.push_back({false, 0, d, name});
  }
  kernel.outputs.push_back({false, 0, output, "y"});
  const std::string result = value_name(program.outputs[0]);
  const bool logical = op == ReduceOp::kAll || op == ReduceOp::kAny;
  const Dtype last = program.values[size_t(program.outputs[0])].dtype;
  // Values of another dtype are not rounded to the 16-bit dtype of the result first.
  const bool narrows = is_narrow_float(output) && last != output;
  const std::string mapped =
      logical   ? "convert<bool>(" + result + ")"
      : narrows ? "convert<float>(" + result + ")"
                : std::string("widen(convert<") + type_name(output) + ">(" + result + "))";
  kernel.preamble = functions(program) + "namespace catena { namespace jit {\nCATENA_FN " + type +
                    " fused_map(" + parameters + ") { " + statements(program, inputs) + "return " +
                    mapped + "; }\n} }\n";
  kernel.map = "catena::jit::fused_map(" + arguments + ")";
  kernel.post_map = "y = a";
  kernel.reduce = combine_text(op);
  if (const char* identity = identity_text(op)) kernel.identity = identity;
  if (mean) kernel.post_map = "y = catena::m::divide(a, (" + type + ")_reduced.size)";
  return kernel;
}

std::string fused_name(const FusedProgram& program) {
  std::string names;
  for (const FusedValue& value : program.values) {
    if (value.kind == FusedValue::kOp)
      names += (names.empty() ? " " : ", ") + std::string(info(value.op).name);
    if (names.size() > 60) return "fused" + names + ", ...";
  }
  return "fused" + names;
}

}  // namespace catena::jit
