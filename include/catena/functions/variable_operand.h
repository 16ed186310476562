// The argument of a differentiable function.
#pragma once

#include <optional>
#include <type_traits>

#include "catena/array/array.h"
#include "catena/autograd/parameter.h"
#include "catena/autograd/variable.h"

namespace catena {

// An argument of a differentiable function: a variable, an array (a constant) or a host number.
// Refers to the variable; only for the duration of a call.
class VariableOperand {
 public:
  VariableOperand(const Variable& variable) : variable_(&variable) {}
  VariableOperand(const Parameter& parameter) : variable_(&parameter.variable()) {}
  VariableOperand(const Array& array)
      : owned_(array.defined() ? Variable::constant(array) : Variable()), variable_(&owned_) {}
  VariableOperand(const Scalar& number) : number_(number) {}
  template <class T>
  requires std::is_arithmetic_v<T> VariableOperand(T number) : number_(number) {}
  VariableOperand(const VariableOperand& other)
      : owned_(other.owned_),
        variable_(other.variable_ == &other.owned_ ? &owned_ : other.variable_),
        number_(other.number_) {}
  VariableOperand& operator=(const VariableOperand&) = delete;

  // Whether it is a host number, and the number.
  bool is_number() const { return variable_ == nullptr; }
  const Scalar& number() const { return number_; }
  // The variable; a number is a ValueError naming `who`.
  const Variable& variable(const char* who) const {
    CATENA_CHECK(ValueError, variable_ != nullptr, who,
                 ": expected a variable or an array, got a number");
    CATENA_CHECK(ValueError, variable_->defined(), who, ": got an undefined ",
                 variable_ == &owned_ ? "array" : "variable");
    return *variable_;
  }

 private:
  Variable owned_;
  const Variable* variable_ = nullptr;
  Scalar number_;
};

// A variable in an options struct that may be left out. An array is a constant here, too.
class OptionalVariable {
 public:
  OptionalVariable() = default;
  OptionalVariable(const Variable& variable) : variable_(variable) {}
  OptionalVariable(const Parameter& parameter) : OptionalVariable(parameter.variable()) {}
  OptionalVariable(const Array& array)
      : OptionalVariable(array.defined() ? Variable::constant(array) : Variable()) {}

  // The variable, or null. ValueError, which names `who`, if one was given that has no value.
  const Variable* get(const char* who) const {
    return variable_ ? &VariableOperand(*variable_).variable(who) : nullptr;
  }

 private:
  std::optional<Variable> variable_;
};

}  // namespace catena
