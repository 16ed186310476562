// Reductions whose map is a kernel text, for users' kernels and fused chains.
#pragma once

#include "array/user_kernels/kernel_compiler.h"
#include "backends/cuda/jit/compile/user_source.h"
#include "backends/cuda/jit/program.h"
#include "backends/cuda/jit/user_reduction_plan.h"

namespace catena::jit {

// The program of a kernel's text for the arguments' dtypes, outputs first.
Program* make_reduction_program(int device, const ReductionKernel::Definition& kernel,
                                std::span<const KernelArgument> arguments, UserLetters letters);

struct UserReductionLaunch {
  Program* program = nullptr;
  int partial_bytes = 0;                      // of a partial result; 0: unknown
  std::span<const KernelArgument> arguments;  // outputs first
  size_t outputs = 1;
  Shape shape;  // not empty results
  uint32_t axes = 0;
  bool reduce_dims = true;
  Device device;
};
void launch_user_reduction(const UserReductionLaunch& launch);

}  // namespace catena::jit
