// Cases that PyTorch has computed (see README.md), and the table of catena's functions on variables
// that compute them again. One entry in a table, by the name that the generator uses, makes a
// function known.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "catena/autograd/variable.h"
#include "catena/functions/variable_operand.h"
#include "oracle/oracle.h"

namespace catena::oracle {

// The operands of a case as a function takes them: variables that want a gradient where the case
// says so, else constants. Parameters of the case are those of Call. Reserved ones, which Python
// writes and only evaluate.cpp reads, are
//   operands   how many arguments are operands of the function; gradients follow them
//   wanted     operands whose gradients are compared
//   upstream   results with a gradient, which are the next arguments
//   second     whether second gradients are compared: one more argument for each wanted operand
class Inputs {
 public:
  explicit Inputs(const Call& call);

  const Call* operator->() const { return &call_; }
  size_t count() const { return variables_.size(); }
  // Operand k; std::logic_error unless it is an array.
  const Variable& operator[](size_t k) const;
  // Operand k, an array or a host number.
  VariableOperand operand(size_t k) const;
  // All operands from k on, and those of [begin, end).
  Variables from(size_t k) const { return between(k, count()); }
  Variables between(size_t begin, size_t end) const;
  // The array of operand k in memory of its own, for functions that write into it.
  Array copy(size_t k) const { return (*this)[k].data().copy(); }
  // Names of choices.
  const std::string& text(const std::string& name) const { return call_.parameter(name).text; }
  double real(const std::string& name, double otherwise) const {
    return call_.has(name) ? call_.real(name) : otherwise;
  }

 private:
  const Call& call_;
  Variables variables_;  // undefined for host numbers
};

using Function = std::function<Variables(const Inputs&)>;
using Functions = std::map<std::string, Function>;

void add_activation(Functions& functions);
void add_arrays(Functions& functions);
void add_attention(Functions& functions);
void add_connection(Functions& functions);
void add_evaluation(Functions& functions);
void add_loss(Functions& functions);
void add_math(Functions& functions);
void add_normalization(Functions& functions);
void add_optimizers(Functions& functions);
void add_pooling(Functions& functions);

// The function with what follows it: its results, then the gradients of the wanted operands, then
// the second gradients, of the wanted operands and of the upstream gradients.
Routine routine_of(const Function& function);

}  // namespace catena::oracle
