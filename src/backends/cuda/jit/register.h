// Registers the slots of generated kernels: elementwise, fused, copy, fill, arange, concatenate,
// reduce, arg_reduce.
#pragma once

namespace catena {

void register_jit_kernels();

namespace jit {

void register_elementwise();
void register_fused();
void register_copies();
void register_reductions();
void register_user_kernels();

}  // namespace jit
}  // namespace catena
