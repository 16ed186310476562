// Texts of users' kernels: the user's code inside the loop that calls it.
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

// Kernel catena_user(UserArgs<max(1, operands), dims>, UserRaws<raws>), without the second where
// nothing is raw; operands and raws are numbered in the order outputs, inputs. dims: kUserDims, or
// 1 for loops of at most one dimension.
std::string user_elementwise_source(const ElementwiseKernel::Definition& kernel,
                                    const std::vector<UserParameter>& outputs,
                                    const std::vector<UserParameter>& inputs, UserLetters letters,
                                    int dims);
// Kernel catena_user_reduce(UserArgs<operands> kept, UserArgs<operands> reduced, partial,
// per_split, width, wide, UserRaws<raws>) and catena_user_finish(kept, reduced, partial, splits,
// UserRaws), without the last where nothing is raw; the operands are outputs and inputs that are
// not raw. A block takes `width` neighbouring results and blockIdx.y one of the splits of their
// elements, whose results go to `partial` [split][result].
std::string user_reduction_source(const ReductionKernel::Definition& kernel,
                                  const std::vector<UserParameter>& outputs,
                                  const std::vector<UserParameter>& inputs, UserLetters letters);
// Bytes of the type a and b have; 0: a type of the user's, which is not known here.
int reduced_bytes(const ReductionKernel::Definition& kernel, Dtype first_output);

}  // namespace catena::jit
