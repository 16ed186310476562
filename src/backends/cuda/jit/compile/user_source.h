// Texts of users' kernels: the user's code inside the loop that calls it.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/kernel_compiler.h"

namespace catena::jit {

// One parameter with its dtype resolved.
struct UserParameter {
  std::string name;
  Dtype dtype;
  bool raw;
};
using UserLetters = std::span<const std::pair<char, Dtype>>;

// Kernel catena_user(UserArgs<max(1, operands)>, UserRaws<max(1, raws)>); operands and raws are
// numbered in the order outputs, inputs.
std::string user_elementwise_source(const ElementwiseKernel::Definition& kernel,
                                    const std::vector<UserParameter>& outputs,
                                    const std::vector<UserParameter>& inputs, UserLetters letters);
// Kernel catena_user_reduce(UserArgs<1 + inputs> kept, UserArgs<1 + inputs> reduced); operand 0 is
// the output.
std::string user_reduction_source(const ReductionKernel::Definition& kernel,
                                  const UserParameter& output,
                                  const std::vector<UserParameter>& inputs, UserLetters letters);

}  // namespace catena::jit
