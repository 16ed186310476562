// Exchanges between the parts of tensor-parallel models, as functions whose gradients travel back.
//
// The ranks of a communicator share one model: they run the same program on the same samples, and
// each computes a part of every large product. A variable is one of three kinds:
// - whole: every rank has the same value, and after backward the same gradient;
// - a slice: the rank-th of size() equal pieces of the whole along an axis, and of its gradient;
// - a part: the whole is the sum of all ranks' parts, and each rank has its gradient.
// Losses are whole; each rank calls backward on its own. (F::all_reduce and its kin take the sum of
// all ranks' losses for the loss, so that they count one that is whole size() times.)
//
// | function             | from  | to                                   | its gradient            |
// |----------------------|-------|--------------------------------------|-------------------------|
// | copy_to_ranks        | whole | own work with it, no communication   | is summed               |
// | sum_of_ranks         | part  | whole, the sum                       | passes                  |
// | slice_to_rank        | whole | slice, no communication              | is gathered             |
// | concat_of_ranks      | slice | whole                                | the rank's own slice    |
// | gather_to_ranks      | slice | own work with the whole              | is summed and scattered |
// | scatter_sum_of_ranks | part  | slice of the sum                     | is gathered             |
//
// Each function is the gradient of another one, so that gradients of any order are there.
//
// All ranks make the same calls in the same order, in forward and in backward; that holds if they
// run the same program. The contract of values and errors is that of comm/communicator.h. x must be
// on comm.device() (DeviceError). ShapeError for an axis that size() does not divide, IndexError
// for one that x does not have. With one rank the functions return x. An x without a gradient is
// none that backward waits for. Calls may be inside F::recompute, which makes them again on all
// ranks. The graph does not keep the communicator open: backward after that is a CommError.
#pragma once

#include "catena/array/axes.h"
#include "catena/comm/communicator.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// x itself, for work that differs by rank: the ranks' gradients are summed. In front of
// column-parallel products, and for parameters that each rank uses on a slice of its own.
Variable copy_to_ranks(const VariableOperand& x, Communicator& comm);
// The sum of all ranks' parts, which all get with the same bits.
Variable sum_of_ranks(const VariableOperand& x, Communicator& comm);
// The rank's slice along the axis: a view.
Variable slice_to_rank(const VariableOperand& x, Communicator& comm, Axis axis);
// All ranks' slices as one array, for work that all ranks do alike.
Variable concat_of_ranks(const VariableOperand& x, Communicator& comm, Axis axis);
// All ranks' slices as one array, for work that differs by rank.
Variable gather_to_ranks(const VariableOperand& x, Communicator& comm, Axis axis);
// The rank's slice of the sum of all ranks' parts.
Variable scatter_sum_of_ranks(const VariableOperand& x, Communicator& comm, Axis axis);

}  // namespace catena::functions
