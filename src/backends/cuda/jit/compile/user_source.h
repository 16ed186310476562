// Texts of users' kernels: the user's code inside a loop.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/user_kernels/kernel_compiler.h"

namespace catena::jit {

// One parameter with its dtype resolved.
struct UserParameter {
  std::string name;
  Dtype dtype;
  bool raw;
};
using UserLetters = std::span<const std::pair<char, Dtype>>;

// Kernel catena_user(UserArgs<max(1, operands), dims>, UserRaws<raws>); the second parameter is
// left out if no argument is raw. Operands and raws are numbered in the order outputs, inputs. dims
// is kUserDims, or 1 for loops of at most one dimension.
std::string user_elementwise_source(const ElementwiseKernel::Definition& kernel,
                                    const std::vector<UserParameter>& outputs,
                                    const std::vector<UserParameter>& inputs, UserLetters letters,
                                    int dims);
// Kernels catena_user_reduce(UserArgs<operands> kept, UserArgs<operands> reduced, partial,
// per_split, width, wide, UserRaws<raws>) and catena_user_finish(kept, reduced, partial, splits,
// UserRaws); the last parameter is left out if no argument is raw. The operands are the outputs and
// inputs that are not raw. A block takes `width` adjacent results and blockIdx.y one of the splits
// of their elements, whose results are written to `partial` [split][result].
std::string user_reduction_source(const ReductionKernel::Definition& kernel,
                                  const std::vector<UserParameter>& outputs,
                                  const std::vector<UserParameter>& inputs, UserLetters letters);
// The size in bytes of the type of a and b; 0 for a user's type, which is not known here.
int reduced_bytes(const ReductionKernel::Definition& kernel, Dtype first_output);

}  // namespace catena::jit
