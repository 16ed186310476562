// Program that fuse() passes to a device: a chain of element-wise operations for which every dtype
// is decided.
//
// Plain data that the kernel generator reads without libcatena.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "catena/array/elementwise.h"
#include "catena/kernels/elementwise.h"
#include "catena/kernels/reduce.h"

namespace catena {

// The most inputs and outputs of one program, including arguments that are numbers.
inline constexpr int kMaxFusedOperands = 10;

// One value of the chain. Values come after those from which they are computed.
struct FusedValue {
  enum Kind : uint8_t {
    kInput,   // operand `input` of the call
    kNumber,  // `bits`, in storage type `dtype`
    kOp,      // op(source...) computed in `compute`; sources have operand_dtype(op, k, compute)
    kCast,    // source[0] converted
  };
  Kind kind;
  Dtype dtype;    // of the value, which is rounded to it like the array of a separate call
  Dtype compute;  // kOp
  ElementwiseOp op;
  int source[3];
  int input;
  uint64_t bits;
};

struct FusedInput {
  int argument;  // of the fused function
  Dtype dtype;   // of the value that is read; for an array its own dtype
  bool number;   // a host number
};

struct FusedProgram {
  std::vector<FusedValue> values;
  std::vector<FusedInput> inputs;
  std::vector<int> outputs;  // values
  // What a device made of the program, by the device's architecture index. It lives as long as the
  // process.
  mutable std::array<std::atomic<void*>, 8> compiled{};

  Dtype output_dtype(size_t k) const { return values[size_t(outputs[k])].dtype; }
};

// One run of a program over arrays of one broadcast shape, all on one device.
struct FusedCall {
  const FusedProgram* program;
  const Array* inputs[kMaxFusedOperands];   // in the broadcast shape (stride 0); null: a number
  uint64_t numbers[kMaxFusedOperands];      // the number's storage bits
  const Array* outputs[kMaxFusedOperands];  // new, contiguous, not empty
  // With a reduction the program has one output value, and outputs[0] has the broadcast shape with
  // extent 1 at every axis in `axes`; see ReduceCall.
  bool reduces = false;
  ReduceOp reduction = ReduceOp::kSum;
  uint32_t axes = 0;
  bool mean = false;  // divide by the number of elements
  Shape shape;        // of the loop; not empty
};

}  // namespace catena
