// Texts of the kernels of the element-wise table. See source.h.
#include "backends/cuda/jit/compile/source.h"

namespace catena::jit {

namespace {

std::string macro_list(const char* name, int first, int last) {
  std::string text = std::string("#define ") + name + "(X)";
  for (int k = first; k < last; ++k) text += " X(" + std::to_string(k) + ")";
  return text + "\n";
}

const std::string& map_text() {
  static const std::string text = strip_text(kernel_text("map.cuh"));
  return text;
}
const std::string& tiled_text() {
  static const std::string text = strip_text(kernel_text("tiled.cuh"));
  return text;
}

}  // namespace

std::string operand_macros(int outputs, int operands) {
  return "#define CATENA_N " + std::to_string(operands) + "\n#define CATENA_OUTPUTS " +
         std::to_string(outputs) + "\n" + macro_list("CATENA_EACH_OUTPUT", 0, outputs) +
         macro_list("CATENA_EACH_INPUT", outputs, operands);
}

// The parts of map.cuh and of the files that it includes, trimmed once.
const std::string& common_text() {
  static const std::string text = strip_text(kernel_text("prelude.cuh")) +
                                  strip_text(kernel_text("index.h")) +
                                  strip_text(kernel_text("args.h"));
  return text;
}
std::string map_kernels_text() { return map_text() + tiled_text(); }

bool is_heavy(const ElementwiseInfo& row, Dtype compute) {
  if (functor_of(row, compute) != row.functor) return false;  // those are short
  const uint8_t where = compute == Dtype::kFloat64 ? kLongInDouble
                        : is_float(compute)        ? kLongInSingle
                                                   : kLongInInt;
  return (static_cast<uint8_t>(row.cost) & where) != 0;
}

const std::vector<std::string>& compile_options() {
  // No contraction, full-precision division and square roots: + - * / sqrt equal those of the CPU.
  static const std::vector<std::string> options = {"--std=c++17", "--fmad=false", "--minimal",
                                                   "--diag-suppress=177"};
  return options;
}

MapSpec same_dtype_spec(ElementwiseOp op, Dtype d) {
  const ElementwiseInfo& row = info(op);
  MapSpec spec{op, d, {}};
  spec.memory[0] = row.natural_result(d);
  for (int k = 0; k < row.inputs; ++k) spec.memory[1 + k] = row.operand_dtype(k, d);
  return spec;
}

std::string map_source(const MapSpec& spec) {
  const ElementwiseInfo& row = info(spec.op);
  const int operands = 1 + row.inputs;
  const std::string functor = functor_of(row, spec.compute);
  std::string text = common_text() + functor_text(functor) + "namespace catena { namespace jit {\n";
  for (int k = 0; k < operands; ++k) {
    text += "typedef " + std::string(type_name(spec.memory[k])) + " Operand" + std::to_string(k) +
            ";\n";
  }
  // The operation on computed values, rounded to its own result dtype.
  std::string parameters, arguments, widened;
  for (int k = 0; k < row.inputs; ++k) {
    const std::string number = std::to_string(k),
                      type = type_name(row.operand_dtype(k, spec.compute));
    const char* comma = k ? ", " : "";
    parameters += comma + ("Compute<" + type + ">::type x" + number);
    arguments += comma + ("x" + number);
    widened += comma + ("widen(convert<" + type + ">(V(" + std::to_string(k + 1) + ")))");
  }
  const std::string result = type_name(row.natural_result(spec.compute));
  text += std::string("__device__ ") +
          (is_heavy(row, spec.compute) ? "__noinline__ " : "__forceinline__ ") + "Compute<" +
          result + ">::type catena_operation(" + parameters + ") { return ops::" + functor +
          "::apply(" + arguments + "); }\n} }\n";
  text += operand_macros(1, operands) +
          "#define CATENA_ELEMENT(V) V(0) = convert<Operand0>(convert<" + result +
          ">(catena_operation(" + widened + ")));\n";
  return text + map_kernels_text();
}

}  // namespace catena::jit
