// Texts of reductions, arange and concatenate. See source.h.
#include "backends/cuda/jit/compile/source.h"

namespace catena::jit {

namespace {

std::string common(std::initializer_list<const char*> files) {
  std::string text;
  for (const char* file : files) text += strip_text(kernel_text(file));
  return text;
}
std::string types(std::initializer_list<std::pair<const char*, std::string>> list) {
  std::string text = "namespace catena { namespace jit {\n";
  for (const auto& [name, type] : list) text += "typedef " + type + " " + name + ";\n";
  return text + "} }\n";
}

std::string accumulator_type(Dtype output) {
  return is_narrow_float(output) ? "float" : type_name(output);
}

// The smallest (or largest) value of a dtype, where a maximum (minimum) starts.
std::string extreme(Dtype d, bool smallest) {
  if (d == Dtype::kBool) return smallest ? "false" : "true";
  if (d == Dtype::kFloat64)
    return smallest ? "-__longlong_as_double(0x7ff0000000000000ll)"
                    : "__longlong_as_double(0x7ff0000000000000ll)";
  if (is_float(d)) return smallest ? "-__int_as_float(0x7f800000)" : "__int_as_float(0x7f800000)";
  const std::string type = type_name(d), bits = std::to_string(itemsize(d) * 8 - 1);
  if (is_unsigned_int(d)) return smallest ? "(" + type + ")0" : "(" + type + ")~(" + type + ")0";
  const std::string lowest = "(" + type + ")(1ull << " + bits + ")";
  return smallest ? lowest : "(" + type + ")((1ull << " + bits + ") - 1)";
}

}  // namespace

const char* combine_text(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kSumOfSquares: return "a + b";
    case ReduceOp::kProd: return "a * b";
    case ReduceOp::kMax: return "a >= b || a != a ? a : b";
    case ReduceOp::kMin: return "a <= b || a != a ? a : b";
    case ReduceOp::kAll: return "a && b";
    case ReduceOp::kAny: return "a || b";
  }
  return nullptr;
}

const char* identity_text(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kSumOfSquares: return "0";
    case ReduceOp::kProd: return "1";
    case ReduceOp::kAll: return "true";
    case ReduceOp::kAny: return "false";
    case ReduceOp::kMax:
    case ReduceOp::kMin: break;
  }
  return nullptr;
}

std::string reduce_source(ReduceOp op, Dtype input, Dtype output) {
  const std::string accumulator = accumulator_type(output);
  // Inputs of another dtype are not rounded to the 16-bit dtype of the result first.
  const bool narrows = is_narrow_float(output) && input != output;
  const bool logical = op == ReduceOp::kAll || op == ReduceOp::kAny;
  const bool divides = is_float(output) && op == ReduceOp::kSum;
  std::string map = logical   ? "convert<bool>(x)"
                    : narrows ? "convert<Accumulator>(x)"
                              : "widen(convert<Output>(x))";
  if (op == ReduceOp::kSumOfSquares) map += " * " + map;
  const char* first = identity_text(op);
  const std::string identity = first ? first : extreme(output, op == ReduceOp::kMax);
  const std::string combine = combine_text(op);
  std::string text = common({"prelude.cuh", "index.h", "args.h", "shuffle.cuh"});
  text += types(
      {{"Input", type_name(input)}, {"Output", type_name(output)}, {"Accumulator", accumulator}});
  text +=
      "namespace catena { namespace jit {\nstruct Reduction {\n  static constexpr bool kDivides "
      "= " +
      std::string(divides ? "true" : "false") +
      ";\n  static CATENA_FN Accumulator identity() { return Accumulator(" + identity +
      "); }\n  static CATENA_FN Accumulator map(Input x) { return Accumulator(" + map +
      "); }\n  static CATENA_FN Accumulator combine(Accumulator a, Accumulator b) { return "
      "Accumulator(" +
      combine + "); }\n};\n} }\n";
  return text + strip_text(kernel_text("reduce.cuh"));
}

std::string arg_reduce_source(Dtype input) {
  return common({"prelude.cuh", "index.h", "args.h", "shuffle.cuh"}) +
         types({{"Input", type_name(input)}}) + strip_text(kernel_text("arg_reduce.cuh"));
}

std::string arange_source(Dtype output) {
  return common({"prelude.cuh", "index.h", "args.h"}) + types({{"Output", type_name(output)}}) +
         strip_text(kernel_text("arange.cuh"));
}

std::string concatenate_source(int word_bytes) {
  const char* word = word_bytes == 1   ? "unsigned char"
                     : word_bytes == 2 ? "unsigned short"
                     : word_bytes == 4 ? "unsigned int"
                     : word_bytes == 8 ? "uint2"
                                       : "uint4";
  return common({"prelude.cuh", "index.h", "args.h"}) + types({{"ConcatWord", word}}) +
         strip_text(kernel_text("concatenate.cuh"));
}

}  // namespace catena::jit
