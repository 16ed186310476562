// Cross entropy of the scores of a linear layer whose classes are spread over ranks, without scores
// in memory as a whole.
#pragma once

#include "catena/comm/communicator.h"
#include "catena/functions/loss/linear_cross_entropy.h"

namespace catena::functions {

// linear_cross_entropy where each rank has neighbouring rows of W, (rows, size), and of b, (rows):
// those of a ColumnParallelLinear, or the table of a VocabParallelEmbedID. h and t are whole. The
// loss and the gradient of h are whole, with the same bits on all ranks; W and b get the gradients
// of their rows. All ranks make the call, with the same options. With one rank it is
// linear_cross_entropy.
//
// The placement of a parameter W says which classes its rows are: slices may be uneven, and empty.
// Any other W counts as one of equal slices, in the order of the ranks. The rest of the contract is
// that of linear_cross_entropy, with these differences:
//
// - Ranks exchange no scores. For each chunk they exchange six numbers a token (seven with
//   label_smoothing) in one message, and sum the gradient of h, where it is wanted, in float32 or
//   wider. On a GPU both travel beside the products of this chunk and of the next.
// - Backward exchanges nothing, but with kNone, where it makes these messages again, and with
//   create_graph. The graph does not keep the communicator open: such a backward after its end is a
//   CommError.
// - The scores of two chunks, (chunk, rows) each, are in memory unless there is one chunk alone. By
//   default both have 176 MiB for the mean number of rows. The gradient of h is kept in float32 or
//   wider until backward.
//
// Give an h that is a slice of the sequence as concat_of_ranks(h, comm, 0). Leave copy_to_ranks(h)
// out: it would add up the gradient of h once more.
//
// ValueError for a parameter W whose rows are not cut over the ranks of `comm`. On a CPU a
// ValueError on all ranks, on a GPU NaN as the loss: slices of W that do not follow each other, and
// a token whose label is not the same on all ranks or outside [0, classes). DeviceError unless the
// operands are on comm.device().
Variable vocab_parallel_linear_cross_entropy(const VariableOperand& h, const VariableOperand& W,
                                             const VariableOperand& t, Communicator& comm,
                                             const LinearCrossEntropyOptions& options = {});
Variable vocab_parallel_linear_cross_entropy(const VariableOperand& h, const VariableOperand& W,
                                             const VariableOperand& b, const VariableOperand& t,
                                             Communicator& comm,
                                             const LinearCrossEntropyOptions& options = {});

}  // namespace catena::functions
