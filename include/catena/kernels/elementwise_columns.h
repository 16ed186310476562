// Values of the columns of the element-wise table, and the first number of each family. Data alone:
// the CPU loops, which are compiled once for each x86-64 level, may not see an inline function.
#pragma once

#include <cstdint>

namespace catena {

// Dtypes an operation computes in. Inputs of another dtype are promoted into the class: integers of
// a float operation as float_result() of each says (uint8 with int8: float16), bool of an
// arithmetic one to int8.
enum class OpTypes : uint8_t {
  kAll,         // bool, integers, floats
  kNumeric,     // integers, floats; bool is a DtypeError
  kArithmetic,  // integers, floats; bool becomes int8
  kIntBool,     // bool, integers; floats are a DtypeError
  kInt,         // integers; bool becomes int8, floats are a DtypeError
  kFloat,       // floats
  kTrueDivide,  // floats; every integer becomes float64, as NumPy's division
};

// The same as bits, one value an enumerator. This is the only copy of the rule.
inline constexpr uint8_t kBoolBit = 1, kIntBit = 2, kFloatBit = 4;
inline constexpr uint8_t kOpKinds[] = {
    kBoolBit | kIntBit | kFloatBit,
    kIntBit | kFloatBit,
    kIntBit | kFloatBit,
    kBoolBit | kIntBit,
    kIntBit,
    kFloatBit,
    kFloatBit,
};

// The dtypes of operands and result where an operation computes in T.
enum class OpForm : uint8_t {
  kSame,    // T... -> T
  kTest,    // T... -> bool
  kChoice,  // bool, T... -> T: operand 0 is a condition
};

// What an element costs, as bits: where the operation is long, so that GPU kernels call it instead
// of holding a copy for each element of a vector, and whether it is approximated, which on the CPU
// takes the padded loops of vector functions and threads earlier.
inline constexpr uint8_t kLongInDouble = 1, kLongInSingle = 2, kLongInInt = 4, kApproximated = 8;
enum class OpCost : uint8_t {
  kShort = 0,                                          // a few instructions
  kLongDouble = kLongInDouble,                         // a call or a division in float64
  kDivision = kLongInDouble | kLongInInt,              // a division in float64 and of integers
  kLong = kLongInDouble | kLongInSingle | kLongInInt,  // exact and long in all dtypes, as fmod
  kApproximate = kApproximated | kLongInDouble,        // short in float32, as exp
  kHeavy = kApproximated | kLong,                      // long in all dtypes, as sin
};

// A row's number is that of its family and its place in the family's file: rows of one file say
// nothing about the numbers of the others. Numbers between families name no operation.
inline constexpr int kFamilyRows = 128;  // room for the rows of a family
inline constexpr int kFirstArithmetic = 0 * kFamilyRows;
inline constexpr int kFirstMath = 1 * kFamilyRows;
inline constexpr int kFirstLogic = 2 * kFamilyRows;
inline constexpr int kFirstGradient = 3 * kFamilyRows;
inline constexpr int kFirstActivation = 4 * kFamilyRows;
inline constexpr int kElementwiseRows = 5 * kFamilyRows;

}  // namespace catena
