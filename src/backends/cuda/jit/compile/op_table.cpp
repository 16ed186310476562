// The element-wise table of the generator. See op_table.h.
#include "backends/cuda/jit/compile/op_table.h"

namespace catena::jit {

namespace {

using enum OpTypes;
using enum OpResult;

const OpRow kRows[] = {
#define CATENA_EW(count, functor, name, types, result) \
  {#name, #functor, count, types, result, std::string_view(#name) == "where"},
#define CATENA_EW1(functor, name, types, result, ...) CATENA_EW(1, functor, name, types, result)
#define CATENA_EW2(functor, name, types, result, ...) CATENA_EW(2, functor, name, types, result)
#define CATENA_EW3(functor, name, types, result, ...) CATENA_EW(3, functor, name, types, result)
#include "catena/kernels/detail/elementwise.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
#undef CATENA_EW
};
static_assert(sizeof(kRows) / sizeof(kRows[0]) == kElementwiseOpCount);

}  // namespace

const OpRow& op_row(ElementwiseOp op) { return kRows[static_cast<int>(op)]; }

bool row_computes_in(const OpRow& row, Dtype d) {
  switch (row.types) {
    case kAll:
      return true;
    case kNumeric:
    case kArithmetic:
      return d != Dtype::kBool;
    case kIntBool:
      return !is_float(d);
    case kInt:
      return is_int(d);
    case kFloat:
    case kTrueDivide:
      return is_float(d);
  }
  return false;
}

const char* type_name(Dtype d) {
  static const char* const names[kDtypeCount] = {"bool",
                                                 "signed char",
                                                 "short",
                                                 "int",
                                                 "long long",
                                                 "unsigned char",
                                                 "unsigned short",
                                                 "unsigned int",
                                                 "unsigned long long",
                                                 "Half",
                                                 "BFloat16",
                                                 "float",
                                                 "double"};
  return names[static_cast<int>(d)];
}

const char* dtype_name(Dtype d) {
  static const char* const names[kDtypeCount] = {
      "bool",   "int8",   "int16",   "int32",    "int64",   "uint8",  "uint16",
      "uint32", "uint64", "float16", "bfloat16", "float32", "float64"};
  return names[static_cast<int>(d)];
}

}  // namespace catena::jit
