// Records of functions that move elements or look at them in another order.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "functions/function_record.h"

namespace catena {

// A function of one input that runs no kernel either way unless told otherwise.
inline FunctionRecord view_record(std::string function, std::string variant, const Shapes& inputs,
                                  std::function<Variable(const Variable&)> call) {
  FunctionRecord r = unary_record(std::move(function), std::move(variant), inputs, std::move(call));
  r.forward_launches = r.backward_launches = 0;
  return r;
}

}  // namespace catena
