// Texts of fused chains.
#pragma once

#include <string>

#include "array/fusion/fused_program.h"
#include "array/user_kernels/kernel_compiler.h"

namespace catena::jit {

// The same kernels as map_source(). The operands are the program's outputs, then its inputs.
std::string fused_source(const FusedProgram& program);
// The chain as the map of a reduction kernel with parameters x0, x1, ... and y.
ReductionKernel::Definition fused_reduction(const FusedProgram& program, ReduceOp op, bool mean,
                                            Dtype output);
// "fused add, multiply, sqrt", for error messages.
std::string fused_name(const FusedProgram& program);

}  // namespace catena::jit
