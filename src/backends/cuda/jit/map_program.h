// Programs of operations of the table: found among those in use, otherwise compiled.
#pragma once

#include "backends/cuda/jit/compile/source.h"
#include "backends/cuda/jit/program.h"

namespace catena::jit {

// The program of an operation whose operands all have the dtypes that belong to `compute`.
Program& same_dtype_program(int device, ElementwiseOp op, Dtype compute);
// The program of any combination of dtypes; null if it is not compiled yet and `may_compile` is
// false.
Program* map_program(int device, const MapSpec& spec, bool may_compile);

}  // namespace catena::jit
