// Einstein's summation of variables.
#pragma once

#include <concepts>
#include <string_view>

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Products of the operands, summed over axes, by subscripts as those of einsum in linalg.h:
//
//   einsum("ij,jk->ik", a, b)             a matrix product
//   einsum("bqhd,bkhd->bhqk", q, k)       scores of attention
//   einsum("ii->", a)                     a trace
//
// Letters name axes; axes of one name have one extent, or 1, which broadcasts; names missing after
// the arrow are summed over; a name twice in one operand is the diagonal; "..." stands for the
// other axes. Without an arrow the result has the "..." axes, then the names that occur once, in
// alphabetical order. Operands: floats of one dtype, on one device, else InvalidType and
// DeviceError. ValueError, which shows the subscripts, unless they name the axes of the operands,
// and without an operand; ShapeError for extents that differ.
//
// A composition: operands are contracted from left to right by products of matrices, so the order
// given is the order of work. Differentiable any number of times. A single operand from which
// nothing is summed gives a view.
Variable einsum(std::string_view subscripts, const Variables& operands);
// The operands one by one; arrays are constants.
template <std::convertible_to<VariableOperand>... Operands>
requires(sizeof...(Operands) > 0) Variable
    einsum(std::string_view subscripts, const Operands&... operands) {
  return einsum(subscripts, Variables{VariableOperand(operands).variable("Einsum")...});
}

}  // namespace catena::functions
